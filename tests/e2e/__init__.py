"""Tests over real processes and sockets from end to end."""
