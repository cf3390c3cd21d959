"""Hostile HTTP clients. The tables: requests that may be read in two ways (test_framing), texts that cost more to read
than to send (test_stalls), answers that nobody reads (test_unread).
"""
