"""Tests of the gateway: one process, a broker that records, no sockets."""
