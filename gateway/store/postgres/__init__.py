"""The PostgreSQL engine: one writer's lock for all gateways on one database, group commit, unknown outcomes asked.

Needs the extra `postgres`, so only who is asked for a database of this kind imports it.
"""
