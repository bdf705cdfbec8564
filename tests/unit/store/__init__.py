"""Tests of the stores themselves, below the promises that every store keeps."""
