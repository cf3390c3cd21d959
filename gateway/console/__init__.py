"""The web console at /console: pages for the person in charge, rendered on the server (docs/console.md).

A transport beside gRPC, Connect and REST: what it shows it reads by the same use cases, and what it does it asks of the
contract's own methods, with their roles, their checks and their history.
"""
