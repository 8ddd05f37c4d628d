"""Programs, object code and kernels."""
