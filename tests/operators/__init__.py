"""Operators, with real processes."""
