"""The engine on a held clock over the memory store, and its link over real sockets."""
