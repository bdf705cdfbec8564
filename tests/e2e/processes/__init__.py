"""The last minute of a process: kill -9, SIGTERM, SIGSTOP, restarts, with real processes."""
