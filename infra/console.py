"""The built console: what CloudFront serves, put into its bucket with every deployment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_cognito as cognito
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3_assets as assets
from aws_cdk import aws_s3_deployment as deployment
from constructs import Construct, IConstruct

from infra.front import Front
from infra.layers import ROOT
from infra.logs import LogGroup
from infra.options import Options
from infra.rights import LOG
from sweephand.topology import Names

BUILT: Final = ROOT / "layers" / "core" / "python" / "sweephand" / "local" / "site"
ELSEWHERE: Final = "SWEEPHAND_SITE"
"""The variable that names another folder in which a console was built."""
ASSETS: Final = "assets"
PUBLISHER: Final = "publish"
_A_YEAR: Final = Duration.days(365)


def built_site() -> Path:
    """The folder of the built console; it must be there before anything is made of it."""
    folder = Path(os.environ.get(ELSEWHERE) or BUILT)
    if not (folder / "index.html").is_file():
        raise FileNotFoundError(f"{folder} has no index.html: the console was not built. Run `make console` first.")
    return folder


class Console(Construct):
    """Published by a function that CDK brings and that runs at deployments only; its role is ours."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        names: Names,
        key: kms.IKey,
        front: Front,
        client: cognito.UserPoolClient,
        site: Path,
        options: Options,
    ) -> None:
        super().__init__(scope, id_)
        self._front = front
        # Pages and assets apart, since they are kept for so different times.
        pages = assets.Asset(self, "PagesFiles", path=str(site), exclude=[ASSETS])
        named = assets.Asset(self, "AssetsFiles", path=str(site / ASSETS))
        group = LogGroup(self, "Log", name=f"/aws/lambda/{names.of(PUBLISHER)}", key=key, options=options)
        role = self._role(group, pages)
        config = {"signIn": {"url": front.sign_in, "clientId": client.user_pool_client_id}}
        first = deployment.BucketDeployment(
            self,
            "Assets",
            sources=[_source(named)],
            destination_bucket=front.console,
            destination_key_prefix=ASSETS,
            cache_control=[
                deployment.CacheControl.set_public(),
                deployment.CacheControl.max_age(_A_YEAR),
                deployment.CacheControl.immutable(),
            ],
            prune=False,  # pages that are open still ask for those they were built with
            role=role.without_policy_updates(),
            log_group=group,
        )
        then = deployment.BucketDeployment(
            self,
            "Pages",
            sources=[_source(pages), deployment.Source.json_data("config.json", config)],
            destination_bucket=front.console,
            cache_control=[deployment.CacheControl.no_cache()],
            exclude=[f"{ASSETS}/*"],
            distribution=front.distribution,
            distribution_paths=["/*"],
            role=role.without_policy_updates(),
            log_group=group,
        )
        then.node.add_dependency(first)  # a page must not be there before what it asks for
        for function in _brought(self):
            function.add_property_override("FunctionName", names.of(PUBLISHER))
            function.add_property_override("KmsKeyArn", key.key_arn)
            function.add_property_override("LoggingConfig.LogFormat", "JSON")

    def _role(self, group: LogGroup, asset: assets.Asset) -> iam.Role:
        """To read what was built, to put it where it is served from, and to say that it is new."""
        bucket = self._front.console
        distribution = Stack.of(self).format_arn(
            service="cloudfront",
            region="",
            resource="distribution",
            resource_name=self._front.distribution.distribution_id,
        )
        rights = {
            "Log": [_allow(LOG, group.log_group_arn)],
            "Read": [_allow(("s3:GetObject",), asset.bucket.arn_for_objects("*"))],
            "Publish": [
                _allow(("s3:ListBucket",), bucket.bucket_arn),
                _allow(("s3:PutObject", "s3:DeleteObject"), bucket.arn_for_objects("*")),
            ],
            "Invalidate": [_allow(("cloudfront:CreateInvalidation", "cloudfront:GetInvalidation"), distribution)],
        }
        return iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            inline_policies={name: iam.PolicyDocument(statements=some) for name, some in rights.items()},
        )


def _source(asset: assets.Asset) -> deployment.ISource:
    return deployment.Source.bucket(asset.bucket, asset.s3_object_key)


def _allow(actions: tuple[str, ...], resource: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=list(actions), resources=[resource])


def _brought(scope: Construct) -> list[lambda_.CfnFunction]:
    """The functions that CDK adds to the stack for this, by the name that it gives them."""
    added: list[IConstruct] = [
        child for child in Stack.of(scope).node.children if child.node.id.startswith("Custom::CDKBucketDeployment")
    ]
    return [one for child in added for one in child.node.find_all() if isinstance(one, lambda_.CfnFunction)]
