"""The gateway as the worker sees it: the port, its gRPC client, the held lease, the outbox of reports."""
