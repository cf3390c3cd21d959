"""The gateway: a lease queue for orders that must never be placed twice, and a mirror of their states."""
