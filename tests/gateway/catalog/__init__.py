"""The order catalogue."""
