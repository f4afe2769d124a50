"""One suite per port; every store must pass it."""
