"""The command line: arguments as data, one module a command. Importing it loads nothing heavy."""
