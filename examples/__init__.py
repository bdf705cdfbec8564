"""Programs to learn from; `make run` starts the first, hello.py."""
