"""The REST API: written once, for a Lambda function behind API Gateway and for one machine.

Import what you need from its modules: a function that only asks who is calling does without the web framework.
"""
