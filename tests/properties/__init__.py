"""Stateful property tests: whole machines against small models, over the use cases and over gRPC."""
