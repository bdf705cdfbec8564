"""Puts the broker together: settings, supervisor, signals, exit codes."""
