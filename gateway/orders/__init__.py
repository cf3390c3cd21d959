"""What can happen to an order: use cases as plain synchronous functions over a transaction and an instant."""
