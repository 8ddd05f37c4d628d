"""Views of arrays, and the protocols by which they are exchanged."""
