"""The REST API: written once, for a Lambda function behind API Gateway and for one machine."""

from sweephand.api.app import PUBLIC, Api
from sweephand.api.problems import Unauthorized

__all__ = ["PUBLIC", "Api", "Unauthorized"]
