"""The commands of `order-gateway`, a module for each group."""
