"""Benchmarks of the gateway, each beside the floor that an empty grpc.aio service gives in the same run."""
