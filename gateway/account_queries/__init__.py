"""What can happen to an account query: use cases as plain synchronous functions over a transaction and an instant.

Apart from gateway.orders, whose safety rule is the opposite one (docs/two-queues.md).
"""
