"""Requests made at random from the descriptors: none may make the broker fail, or write when it is refused."""
