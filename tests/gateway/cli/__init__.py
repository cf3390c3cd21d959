"""The command line of the gateway."""
