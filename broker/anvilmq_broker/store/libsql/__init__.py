"""The default store: one libSQL file, one connection, one thread."""
