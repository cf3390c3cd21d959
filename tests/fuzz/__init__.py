"""Fuzzing the two parsers that read the outside world: intents at the gateway and worker, the shop's pages at the worker."""
