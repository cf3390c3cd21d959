"""Account queries: reading what the logged-in account shows, beside the order loop.

The rule: docs/specification.md#account-queries.
"""
