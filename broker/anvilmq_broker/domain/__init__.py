"""The rules of the broker as values and pure functions: no I/O, no clock, no chance but what is handed in."""
