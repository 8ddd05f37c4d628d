"""Races your code, or ftcuda's, on purpose, for as long as you like: ``python -m ftcuda.stress --help``.

What is public is the command, and :mod:`ftcuda.testing.hazard`, of which hazards are made. The modules here may change.
"""
