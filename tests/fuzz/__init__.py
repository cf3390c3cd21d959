"""Fuzzing what reads the outside world: intents at gateway and worker, the shop's pages at the worker."""
