"""The reference lists what the code has, no more and no less."""
