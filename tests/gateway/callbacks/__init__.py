"""Callbacks: what is filed, how it is delivered, where it may not go."""
