"""Results that are sent while the next ones are computed: `python -m examples.streaming`."""
