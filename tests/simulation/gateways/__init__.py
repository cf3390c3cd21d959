"""Several gateways on one database: the real PostgreSQL store under the virtual clock, over a double of the server."""
