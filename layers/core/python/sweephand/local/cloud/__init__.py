"""AWS in this process: a deployment on moto, with the real handlers of `functions/` behind real events."""

from sweephand.local.cloud.deployment import Deployment
from sweephand.local.cloud.front import Front
from sweephand.local.cloud.functions import FunctionFailed, Later

__all__ = ["Deployment", "Front", "FunctionFailed", "Later"]
