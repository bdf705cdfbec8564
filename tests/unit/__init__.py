"""Tests inside one process: no sleeping, no socket but the own engine's, time from a fake clock."""
