"""Tests of real processes: started, killed and asked over the wire."""
