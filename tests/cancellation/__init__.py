"""Calls that are broken off: at every await under virtual time, and in their thousands over sockets."""
