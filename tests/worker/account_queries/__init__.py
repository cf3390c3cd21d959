"""Account queries at the worker."""
