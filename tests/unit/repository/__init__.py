"""Tests of the tree itself: names, folders, docstrings, and a test for every rule."""
