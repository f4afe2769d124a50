"""Benchmarks: one module each, with a `main()` that prints what it measured; never part of the test run."""
