"""Programs that show ftcuda at work."""
