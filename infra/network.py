"""Where containers run: a VPC of public subnets and nothing that costs while it is empty, or a given one."""

from __future__ import annotations

from aws_cdk import Aws
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from infra.logs import LogGroup
from infra.options import Options
from sweephand.topology import Names


class Network(Construct):
    """Without NAT: a container has an address of its own, and its security group lets nobody in."""

    def __init__(self, scope: Construct, id_: str, *, names: Names, key: kms.IKey, options: Options) -> None:
        super().__init__(scope, id_)
        self.vpc = self._given(options) if options.vpc_id else self._own(names, key, options)
        self.subnet_ids = list(options.subnet_ids) or [subnet.subnet_id for subnet in self.vpc.public_subnets]
        self.security_group = ec2.SecurityGroup(
            self,
            "Containers",
            vpc=self.vpc,
            description=f"Containers of {names.prefix}: out, and nobody in",
            allow_all_outbound=False,
        )
        self.security_group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "HTTPS")

    def _given(self, options: Options) -> ec2.IVpc:
        # The zones are only counted here: synthesis asks no account anything.
        return ec2.Vpc.from_vpc_attributes(
            self,
            "Given",
            vpc_id=options.vpc_id,
            public_subnet_ids=list(options.subnet_ids),
            availability_zones=[f"zone-{number}" for number, _ in enumerate(options.subnet_ids)],
        )

    def _own(self, names: Names, key: kms.IKey, options: Options) -> ec2.Vpc:
        vpc = ec2.Vpc(
            self,
            "Vpc",
            vpc_name=names.prefix,
            max_azs=2,
            nat_gateways=0,
            subnet_configuration=[
                ec2.SubnetConfiguration(
                    name="public", subnet_type=ec2.SubnetType.PUBLIC, cidr_mask=20, map_public_ip_on_launch=False
                )
            ],
        )
        group = LogGroup(self, "Log", name=f"/aws/vpc/{names.prefix}", key=key, options=options)
        role = iam.Role(
            self,
            "FlowRole",
            assumed_by=iam.ServicePrincipal(
                "vpc-flow-logs.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
            ),
            inline_policies={
                "Log": iam.PolicyDocument(
                    statements=[
                        iam.PolicyStatement(
                            actions=["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
                            resources=[group.log_group_arn],
                        )
                    ]
                )
            },
        )
        ec2.FlowLog(
            self,
            "Flow",
            resource_type=ec2.FlowLogResourceType.from_vpc(vpc),
            destination=ec2.FlowLogDestination.to_cloud_watch_logs(group, role.without_policy_updates()),
            traffic_type=ec2.FlowLogTrafficType.REJECT,
        )
        return vpc
