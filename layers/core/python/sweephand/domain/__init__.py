"""The rules, as pure functions of their arguments: no clock, no store, no network."""
