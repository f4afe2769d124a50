"""What the CDK's command line runs."""

from __future__ import annotations

from aws_cdk import App

from infra.deployment import build

if __name__ == "__main__":
    app = App()
    build(app)
    app.synth()
