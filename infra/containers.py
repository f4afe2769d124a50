"""What agents are launched from: a cluster, what they may do, and the definition of one that works alone.

Definitions of containers are made by the functions, one for each image and size; all have the roles of this file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from aws_cdk import Aws, CfnOutput, Fn, IgnoreMode
from aws_cdk import aws_ecr_assets as ecr_assets
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from constructs import Construct
from msgspec.structs import replace

from infra.data import DataStack
from infra.layers import ROOT
from infra.logs import LogGroup
from infra.network import Network
from infra.options import Options
from infra.rights import LOG, READ_KEY, WRITE_KEY
from sweephand.settings import Settings
from sweephand.topology import AGENT, AGENT_CONTAINER, ARTIFACTS_PREFIX, PACKS_PREFIX, Names

_BUILT_FROM: Final = ("functions/agent", "layers/core/python/sweephand", "pyproject.toml", "README.md", "LICENSE")
_SCRATCH: Final = "scratch"
_OWN_REGISTRY: Final = re.compile(r"(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com/([^:@]+)", re.ASCII)
_PULL: Final = ("ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")


class Containers(Construct):
    """No container runs by itself: there is a definition and no service, so that nothing is paid for."""

    def __init__(
        self, scope: Construct, id_: str, *, names: Names, data: DataStack, address: str, options: Options
    ) -> None:
        super().__init__(scope, id_)
        self._data = data
        network = Network(self, "Network", names=names, key=data.key, options=options)
        cluster = ecs.Cluster(
            self,
            "Cluster",
            cluster_name=names.prefix,
            vpc=network.vpc,
            enable_fargate_capacity_providers=True,
            container_insights_v2=ecs.ContainerInsights.DISABLED,
        )
        self.cluster_arn: Final = cluster.cluster_arn
        task_role = self._role("TaskRole", self._what_is_left())
        execution_role = self._role("ExecutionRole", list(_pulled(options)))
        self.role_arns: Final = (task_role.role_arn, execution_role.role_arn)
        image, address_of_image = self._image("Image", options, ecr_assets.Platform.LINUX_ARM64)
        self._x86 = ""
        if options.x86_containers:
            _, self._x86 = self._image("ImageX86", options, ecr_assets.Platform.LINUX_AMD64, execution_role)
        definition = ecs.FargateTaskDefinition(
            self,
            "Agent",
            family=names.of(AGENT),
            cpu=256,
            memory_limit_mib=512,
            runtime_platform=ecs.RuntimePlatform(
                cpu_architecture=ecs.CpuArchitecture.ARM64, operating_system_family=ecs.OperatingSystemFamily.LINUX
            ),
            task_role=task_role,
            execution_role=execution_role,
        )
        group = LogGroup(self, "Log", name=f"/aws/ecs/{names.of(AGENT)}", key=data.key, options=options)
        definition.add_volume(name=_SCRATCH)
        told = Settings(name=options.name, url=address, artifacts=data.buckets.artifacts.bucket_name)
        container = definition.add_container(
            "agent",
            container_name=AGENT_CONTAINER,
            image=image,
            essential=True,
            environment=told.to_environ("url", "name", "artifacts"),
            logging=ecs.LogDriver.aws_logs(stream_prefix=AGENT, log_group=group),
            readonly_root_filesystem=True,
        )
        container.add_mount_points(ecs.MountPoint(source_volume=_SCRATCH, container_path="/tmp", read_only=False))
        self._settings = replace(
            told,
            cluster=names.prefix,
            subnets=Fn.join(",", network.subnet_ids),
            security_group=network.security_group.security_group_id,
            task_role=task_role.role_arn,
            execution_role=execution_role.role_arn,
            agent_image=address_of_image,
            agent_image_x86=self._x86,
            container_images=" ".join(options.container_images),
        )
        CfnOutput(self, "Subnets", value=Fn.join(",", network.subnet_ids))
        CfnOutput(self, "SecurityGroup", value=network.security_group.security_group_id)

    def told(self, settings: Settings) -> Settings:
        """These settings, with what whoever launches agents needs to know."""
        own = self._settings
        known = (
            *("url", "artifacts", "cluster", "subnets", "security_group", "task_role", "execution_role"),
            *("agent_image", "agent_image_x86", "container_images"),
        )
        return replace(settings, **{field: getattr(own, field) for field in known})

    def allowed(self, settings: Settings) -> Settings:
        """These settings, with what whoever saves jobs needs to know: which images may run, and for which machines."""
        own = self._settings
        marks = {"agent_image": AGENT, "agent_image_x86": AGENT if self._x86 else ""}
        return replace(settings, container_images=own.container_images, **marks)

    def _role(self, id_: str, statements: list[iam.PolicyStatement]) -> iam.Role:
        """Users' code runs with the first: it may read code and write what it leaves, as `execute` may, and no more."""
        return iam.Role(
            self,
            id_,
            assumed_by=iam.ServicePrincipal(
                "ecs-tasks.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
            ),
            inline_policies={"Own": iam.PolicyDocument(statements=statements)} if statements else None,
        )

    def _what_is_left(self) -> list[iam.PolicyStatement]:
        data = self._data
        return [
            iam.PolicyStatement(actions=list(LOG), resources=[data.run_log.log_group_arn]),
            iam.PolicyStatement(
                actions=["s3:PutObject"],
                resources=[data.buckets.artifacts.arn_for_objects(f"{ARTIFACTS_PREFIX}*")],
            ),
            iam.PolicyStatement(
                actions=["s3:GetObject"],
                resources=[data.buckets.artifacts.arn_for_objects(f"{PACKS_PREFIX}*")],
            ),
            iam.PolicyStatement(
                actions=list(WRITE_KEY + READ_KEY),
                resources=[data.key.key_arn],
                conditions={"StringEquals": {"kms:ViaService": [f"s3.{Aws.REGION}.{Aws.URL_SUFFIX}"]}},
            ),
        ]

    def _image(
        self, id_: str, options: Options, platform: ecr_assets.Platform, reader: iam.IGrantable | None = None
    ) -> tuple[ecs.ContainerImage, str]:
        """Built from here at deployment, which needs Docker, unless one is given."""
        if options.agent_image:
            return ecs.ContainerImage.from_registry(options.agent_image), options.agent_image
        asset = ecr_assets.DockerImageAsset(
            self,
            id_,
            directory=str(ROOT),
            file="functions/agent/Dockerfile",
            exclude=["*", *(f"!{path}" for path in _BUILT_FROM), "**/__pycache__", "**/local/site"],
            ignore_mode=IgnoreMode.DOCKER,
            platform=platform,
        )
        if reader is not None:
            asset.repository.grant_pull(reader)
        return ecs.ContainerImage.from_docker_image_asset(asset), asset.image_uri


def reviewed_images(options: Options) -> Iterator[tuple[str, str, str]]:
    """What cdk-nag says of patterns in the list, which are whoever deploys' own decision."""
    for arn in _repositories(options):
        if "*" in arn:
            named = arn.replace(Aws.PARTITION, "<AWS::Partition>")
            yield "App/Containers/ExecutionRole", f"IAM5[Resource::{named}]", "The option containerImages says so."


def _repositories(options: Options) -> Iterator[str]:
    """The repositories of ECR that the list names; other registries need no right of AWS."""
    for pattern in options.container_images:
        if found := _OWN_REGISTRY.match(pattern):
            account, region, repository = found.groups()
            yield f"arn:{Aws.PARTITION}:ecr:{region}:{account}:repository/{repository}"


def _pulled(options: Options) -> Iterator[iam.PolicyStatement]:
    """ECR's token is for all of its repositories, and each of them says who may fetch from it."""
    repositories = list(_repositories(options))
    if repositories:
        yield iam.PolicyStatement(actions=["ecr:GetAuthorizationToken"], resources=["*"])
        yield iam.PolicyStatement(actions=list(_PULL), resources=repositories)
