"""One suite for every store and for the broker: what is promised, with expectations written by hand."""
