"""The HTTP port: one ASGI application with REST, Connect and pages, its limits, and the server that carries it."""
