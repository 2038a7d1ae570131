"""Programs that throw bytes at the parsers for as long as one likes."""
