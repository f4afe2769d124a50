"""Sweephand on one machine: the embedded engine's loops in one process."""

from sweephand.local.runtime import Runtime

__all__ = ["Runtime"]
