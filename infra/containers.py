"""What containers are started from: a cluster, and the definition of the agent that pulls work and does it."""

from __future__ import annotations

from typing import Final

from aws_cdk import Aws, CfnOutput, Fn, IgnoreMode
from aws_cdk import aws_ecr_assets as ecr_assets
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from infra.layers import ROOT
from infra.logs import LogGroup
from infra.network import Network
from infra.options import Options
from sweephand.topology import Names

_AGENT: Final = "agent"
_BUILT_FROM: Final = ("functions/agent", "layers/core/python/sweephand", "pyproject.toml", "README.md", "LICENSE")
_SCRATCH: Final = "scratch"


class Containers(Construct):
    """No container runs by itself: there is a definition and no service, so that nothing is paid for."""

    def __init__(
        self, scope: Construct, id_: str, *, names: Names, key: kms.IKey, address: str, options: Options
    ) -> None:
        super().__init__(scope, id_)
        network = Network(self, "Network", names=names, key=key, options=options)
        self.cluster = ecs.Cluster(
            self,
            "Cluster",
            cluster_name=names.prefix,
            vpc=network.vpc,
            enable_fargate_capacity_providers=True,
            container_insights_v2=ecs.ContainerInsights.DISABLED,
        )
        definition = ecs.FargateTaskDefinition(
            self,
            "Agent",
            family=names.of(_AGENT),
            cpu=256,
            memory_limit_mib=512,
            runtime_platform=ecs.RuntimePlatform(
                cpu_architecture=ecs.CpuArchitecture.ARM64, operating_system_family=ecs.OperatingSystemFamily.LINUX
            ),
            task_role=self._role("TaskRole"),
            execution_role=self._role("ExecutionRole"),
        )
        group = LogGroup(self, "Log", name=f"/aws/ecs/{names.of(_AGENT)}", key=key, options=options)
        definition.add_volume(name=_SCRATCH)
        container = definition.add_container(
            "agent",
            container_name=_AGENT,
            image=self._image(options),
            essential=True,
            environment={"SWEEPHAND_URL": address},
            logging=ecs.LogDriver.aws_logs(stream_prefix=_AGENT, log_group=group),
            readonly_root_filesystem=True,
        )
        container.add_mount_points(ecs.MountPoint(source_volume=_SCRATCH, container_path="/tmp", read_only=False))
        CfnOutput(self, "Subnets", value=Fn.join(",", network.subnet_ids))
        CfnOutput(self, "SecurityGroup", value=network.security_group.security_group_id)

    def _role(self, id_: str) -> iam.Role:
        """The container itself may do nothing: it has the token that it is started with."""
        return iam.Role(
            self,
            id_,
            assumed_by=iam.ServicePrincipal(
                "ecs-tasks.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
            ),
        )

    def _image(self, options: Options) -> ecs.ContainerImage:
        """Built from here at deployment, which needs Docker, unless one is given."""
        if options.agent_image:
            return ecs.ContainerImage.from_registry(options.agent_image)
        return ecs.ContainerImage.from_asset(
            str(ROOT),
            file="functions/agent/Dockerfile",
            exclude=["*", *(f"!{path}" for path in _BUILT_FROM), "**/__pycache__"],
            ignore_mode=IgnoreMode.DOCKER,
            platform=ecr_assets.Platform.LINUX_ARM64,
        )
