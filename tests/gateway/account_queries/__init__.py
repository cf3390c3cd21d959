"""Account queries at the gateway."""
