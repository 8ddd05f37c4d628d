"""Races of ftcuda's objects on purpose, for as long as you like: ``python -m stress --help``."""
