"""What runs by itself, again and again; all of one shape."""
