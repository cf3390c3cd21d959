"""The adapter of the sandbox shop."""
