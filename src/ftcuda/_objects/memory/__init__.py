"""Memory resources and buffers."""
