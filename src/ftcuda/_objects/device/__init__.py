"""Devices, their properties, and the loaded driver."""
