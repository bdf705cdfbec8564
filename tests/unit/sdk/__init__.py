"""The SDK, in one process, without a network."""
