"""An HTTP server that puts its requests together to batches for one model: `python -m examples.serving`."""
