"""Hostile clients of the gRPC port: `attacks.py` is the table, `test_attacks.py` runs it."""
