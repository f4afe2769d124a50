"""The engine, verb by verb, over the in-memory stores; a few stories over DynamoDB and SQS as moto plays them."""
