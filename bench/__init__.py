"""What AnvilMQ costs and how fast it is, as programs that anyone can run: `python -m bench`. Nothing imports this."""
