"""What the engine writes through; the stores do not know each other."""
