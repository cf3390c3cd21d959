"""Tests of the scripts behind the Makefile."""
