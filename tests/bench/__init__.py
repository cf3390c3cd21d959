"""Tests of the benchmarks: that they measure, not what."""
