"""The hazards, one in each file."""
