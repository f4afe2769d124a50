"""The tests; a package, so that no other distribution's `tests` is imported in its place."""
