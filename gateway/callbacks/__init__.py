"""Callbacks on their way out: use cases as plain synchronous functions over a transaction and an instant."""
