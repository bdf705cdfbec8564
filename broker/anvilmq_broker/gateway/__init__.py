"""gRPC in front of the engine: authentication, validation, limits, streams; it decides nothing about jobs."""
