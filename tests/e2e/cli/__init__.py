"""The command `anvilmq`, as a user types it, against a real broker."""
