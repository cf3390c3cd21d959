"""Account queries: reading what the logged-in account shows, beside the order loop (specification, section 6)."""
