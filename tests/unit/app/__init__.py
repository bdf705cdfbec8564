"""Settings and the supervisor."""
