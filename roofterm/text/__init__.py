"""Text for people: made safe for a terminal, measured in cells, numbers with units. Imports nothing heavy."""
