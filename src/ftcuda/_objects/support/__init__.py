"""What all objects need: errors raised from the core's answers, waits, kept objects, options."""
