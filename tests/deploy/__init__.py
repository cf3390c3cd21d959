"""The files in deploy/: units that systemd takes, steps of the container that work."""
