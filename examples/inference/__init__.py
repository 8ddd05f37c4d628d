"""Multithreaded inference: many threads share one device, its kernels and its weights."""
