"""Measurements, never asserts: `python -m tests.bench` prints every table, each ratio taken within one run."""
