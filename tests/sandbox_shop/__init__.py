"""Tests of the sandbox shop."""
