"""Tests of the site adapters."""
