"""The transports: thin layers that check, convert and call use cases."""
