"""The conformance kit for workers: situations that a worker in any language must come through, and the rules of each.

`order-gateway conformance worker --command "…"` runs it (docs/clients.md). A scripted gateway and the sandbox shop run
in this process; what the worker asks of either stands in one story in the order in which it happened, and the rules are
functions of that story.
"""
