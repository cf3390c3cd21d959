"""What `order-gateway` and `order-worker` have in common as commands: how they print, and what they end with."""
