"""The HTTP client of the API: one method per call, answers as the API gives them."""

from sweephand.client.calls import Client
from sweephand.client.connection import Connection

__all__ = ["Client", "Connection"]
