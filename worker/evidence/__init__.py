"""The evidence: the pages an order passed through, and their screenshots, on this machine's disk."""
