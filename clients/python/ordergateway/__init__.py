"""Clients of order-gateway in Python: the contract as it was generated."""
