"""What the person in charge does and sees: use cases as plain synchronous functions over a transaction and a moment."""
