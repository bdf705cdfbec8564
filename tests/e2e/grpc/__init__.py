"""Tests of the gateway over real gRPC connections."""
