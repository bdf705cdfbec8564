"""The client library of AnvilMQ."""
