"""Agents: real processes that do one attempt each."""
