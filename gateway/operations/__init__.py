"""What the operator does and sees: use cases as plain synchronous functions over a transaction and an instant."""
