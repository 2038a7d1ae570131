"""Pure functions from frames to frames and structs: no I/O, no screen, no globals."""
