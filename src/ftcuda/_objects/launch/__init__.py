"""Launches and their arguments."""
