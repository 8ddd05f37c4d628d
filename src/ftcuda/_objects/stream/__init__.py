"""Streams and events."""
