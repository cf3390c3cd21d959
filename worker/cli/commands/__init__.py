"""The commands of `order-worker`, a module for each."""
