"""The use cases: one module per verb. Each is a sequence of port calls that may stop anywhere and be repeated."""
