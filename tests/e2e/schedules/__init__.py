"""Schedules over a real broker."""
