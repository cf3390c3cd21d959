"""Real processes that are killed, frozen and cut off, again and again, while a shop counts what it was sent."""
