"""Messages and descriptors of the wire package anvilmq.v1, generated from the .proto files beside them."""
