"""One module a gRPC service: parse, validate, send the command, shape the answer; no gRPC context in here."""
