"""The files in deploy/: units that systemd takes, and the pages that lead to them followed as printed."""
