"""What the broker decides: pure functions, tables and properties."""
