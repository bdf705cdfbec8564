"""Every decision and every write: one loop, one thread, one store. Knows neither gRPC nor Kubernetes."""
