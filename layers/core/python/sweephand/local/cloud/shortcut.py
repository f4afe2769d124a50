"""Answers of DynamoDB and SQS without the web in between: a call means the same, and takes a third of the time.

botocore still validates and writes the request and reads the answer, and moto still answers it; nothing is signed,
routed or sent. Any other service goes the long way.
"""

from __future__ import annotations

from typing import Any, Final

from botocore.model import OperationModel
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.core.parse import PROTOCOL_PARSERS
from moto.dynamodb.responses import DynamoHandler
from moto.sqs.responses import SQSResponse

HANDLERS: Final = {"dynamodb": DynamoHandler, "sqs": SQSResponse}
_ERROR_FROM: Final = 300


def answer(client: Any, operation: str, params: dict[str, Any]) -> Any:
    """What the service answers to an operation; raises what the client would."""
    model: OperationModel = client.meta.service_model.operation_model(operation)
    request = client._serializer.serialize_to_request(params, model)
    status, headers, body = _handler(client, model, request).call_action()
    content = body.encode() if isinstance(body, str) else body
    raw = {"status_code": status, "headers": headers, "body": content, "context": {}}
    parsed = client._response_parser.parse(raw, model.output_shape)
    if status >= _ERROR_FROM:
        error = parsed["Error"]
        if (shape := model.service_model.shape_for_error_code(error["Code"])) is not None:
            parsed |= client._response_parser.parse(raw, shape)
        raise client.exceptions.from_code(error.get("QueryErrorCode") or error["Code"])(parsed, operation)
    return parsed


def _handler(client: Any, model: OperationModel, request: dict[str, Any]) -> Any:
    """moto's, as it is when it has read a request."""
    handler: Any = HANDLERS[model.service_model.service_name]()
    parser: Any = PROTOCOL_PARSERS["json"]
    read = {"method": "POST", "values": {}, "headers": {}, "body": request["body"], "url_path": "/", "url_params": {}}
    handler.params = parser(model, map_type=handler.PROTOCOL_PARSER_MAP_TYPE).parse(read)
    handler.headers = request["headers"]
    handler.uri = client.meta.endpoint_url
    handler.path = "/"
    handler.region = client.meta.region_name
    handler.partition = client.meta.partition
    handler.current_account = DEFAULT_ACCOUNT_ID
    handler.querystring, handler.uri_match, handler.response_headers = {}, {}, {}
    return handler
