"""The documented JSON contract: a thin facade over the use cases that gRPC calls too.

The rule: docs/specification.md#rest-contract.
"""
