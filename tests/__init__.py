"""Everything that gates a change: unit tests, tests of real processes, and what both stand on."""
