"""Deterministic simulation: the real gateway and worker code on one virtual clock, with every kind of failure."""
