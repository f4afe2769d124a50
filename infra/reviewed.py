"""Rules of cdk-nag's AwsSolutions pack that do not hold here: where, which, and why it is meant so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_TOKENS: Final = (
    "People come with a JWT and machines with tokens: an authorizer of ours knows both, Cognito's only one."
)
_PUBLIC: Final = "Public on purpose: it says that somebody is there, or which keys are used, and nothing else."
_FIRST_MESSAGE: Final = (
    "Browsers cannot send a header: the token is in the first message, and before it nothing is said."
)
_FIREWALL: Final = "The option waf puts one before the REST API; it costs more than all else, and so is off by default."
_OBJECTS: Final = "The objects of this folder have names that nobody knows in advance."
_CONNECTIONS: Final = "Connections have no names in advance; all are of one stage of one API."
_DELIVERIES: Final = "Log deliveries have no names that a policy could give; AWS documents exactly this statement."
_TRACES: Final = "Traces cost by the call; the log has every step of every execution."
_STAGE: Final = "arn:<AWS::Partition>:execute-api:<AWS::Region>:<AWS::AccountId>:<Live848578DF>/live"
_ATTEMPTS: Final = "IAM5[Resource::{title}Data:ExportsOutputFnGetAttBucketsArtifactsB9EE6400Arn92A234F0/attempts/*]"
_CODE: Final = _ATTEMPTS.replace("/attempts/", "/code/")
_JOB_FILES: Final = _ATTEMPTS.replace("/attempts/", "/jobs/")

REVIEWED: Final[tuple[tuple[str, str, str], ...]] = (
    ("Data/Queues/Undelivered", "SQS3", "It is the last place for what failed elsewhere, and is alarmed."),
    ("Data/Archive/Role", "IAM5[Resource::<BucketsArchiveCE3432CC.Arn>/runs/*]", _OBJECTS),
    ("Data/Archive/Role", "IAM5[Resource::<BucketsArchiveCE3432CC.Arn>/failed/*]", _OBJECTS),
    ("Data/People", "COG2", "Whether a second factor is demanded is for each organisation to say; TOTP is offered."),
    ("Data/People", "COG8", "The plus plan is paid by the user and month; it can be switched on in the console."),
    (
        "App/GatewayAccount/Role",
        "IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs]",
        "A setting of the whole account: its other APIs need what AWS's own policy grants.",
    ),
    ("App/Rest", "APIG2", "The function behind it validates every request against the OpenAPI document."),
    ("App/Rest/DeploymentStage.api", "APIG3", _FIREWALL),
    (
        "App/Rest/DeploymentStage.api",
        "APIG6",
        "Access logs name the error of every call; execution logs would lie in a group without key and retention.",
    ),
    ("App/Rest/Default", "COG4", _TOKENS),
    ("App/Rest/Default/v1/health/GET", "APIG4", _PUBLIC),
    ("App/Rest/Default/v1/jwks.json/GET", "APIG4", _PUBLIC),
    ("App/Live/$connect-Route", "APIG4", _FIRST_MESSAGE),
    ("App/Live/$disconnect-Route", "APIG4", _FIRST_MESSAGE),
    ("App/Live/$default-Route", "APIG4", _FIRST_MESSAGE),
    ("App/Front/Console", "S1", "Only CloudFront can read it, and CloudFront logs who asked."),
    ("App/Front/Distribution", "CFR1", "A team may sign in from anywhere."),
    ("App/Front/Distribution", "CFR2", _FIREWALL),
    (
        "App/Front/Distribution",
        "CFR4",
        "CloudFront's own certificate fixes the policy; with the options domainName and certificateArn it is TLS 1.2.",
    ),
    (
        "App/Console/Role",
        "IAM5[Resource::arn:<AWS::Partition>:s3:::cdk-hnb659fds-assets-<AWS::AccountId>-<AWS::Region>/*]",
        "What was built is there under a hash of it, beside what else the CDK has put there.",
    ),
    (
        "App/Console/Role",
        "IAM5[Resource::<FrontConsole3D71F2AD.Arn>/*]",
        "Assets are named by a hash of what is in them.",
    ),
    (
        "App/Custom::CDKBucketDeployment8693BB64968944B69AAFB0CC9EB8756C",
        "L1",
        "CDK brings it with the runtime that its code is tested on; it runs at deployments only.",
    ),
    ("App/Functions", "L1", "Python 3.13 is what the vendor layer's wheels are pinned for; both move together."),
    ("App/Functions/ScanRole", _JOB_FILES, "Job files have names of their users' choosing."),
    ("App/Functions/ScanRole", _CODE, _OBJECTS),
    *((f"App/Functions/{one}Role", _ATTEMPTS, _OBJECTS) for one in ("Api", "Attempt", "Advance")),
    ("App/Functions/ApiRole", _CODE, _OBJECTS),
    ("App/Containers/TaskRole", _ATTEMPTS, _OBJECTS),
    ("App/Containers/TaskRole", _CODE, _OBJECTS),
    (
        "App/Functions/AttemptRole",
        "IAM5[Resource::*]",
        "ECS registers definitions, and lists tasks of the one cluster that a condition names, without a resource.",
    ),
    (
        "App/Functions/AttemptRole",
        "IAM5[Resource::arn:<AWS::Partition>:ecs:<AWS::Region>:<AWS::AccountId>:task-definition/{name}-*]",
        "Definitions are named by a hash of what is in them; a condition names the cluster.",
    ),
    (
        "App/Functions/AttemptRole",
        "IAM5[Resource::arn:<AWS::Partition>:ecs:<AWS::Region>:<AWS::AccountId>:task/{name}/*]",
        "Tasks have no names in advance; all are of one cluster.",
    ),
    ("App/Functions/ExecuteRole", _ATTEMPTS, _OBJECTS),
    ("App/Functions/ExecuteRole", _CODE, _OBJECTS),
    ("App/Functions/LiveRole", f"IAM5[Resource::{_STAGE}/POST/@connections/*]", _CONNECTIONS),
    ("App/Functions/LiveRole", f"IAM5[Resource::{_STAGE}/DELETE/@connections/*]", _CONNECTIONS),
    ("App/Machines/ExecuteRole", "IAM5[Resource::*]", _DELIVERIES),
    ("App/Machines/Execute", "SF2", _TRACES),
    ("App/Machines/DagRunRole", "IAM5[Resource::*]", _DELIVERIES),
    ("App/Machines/DagRun", "SF2", _TRACES),
    ("App/Machines/BackfillRole", "IAM5[Resource::*]", _DELIVERIES),
    ("App/Machines/Backfill", "SF2", _TRACES),
    (
        "App/Containers/ExecutionRole",
        "IAM5[Resource::*]",
        "ecr:GetAuthorizationToken knows no resource; all else is one repository.",
    ),
    ("App/Containers/Cluster", "ECS4", "Insights are paid by the metric; no container of ours runs by itself."),
    (
        "App/Containers/Agent",
        "ECS2",
        "The variables are names and the public address of the API; the lease is given at the start.",
    ),
)


def reviewed_of(secret_arns: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """The same for what the option secretArns names: its patterns are whoever deploys' own decision."""
    for pattern in secret_arns:
        resource = pattern.replace("{namespace}", "*")
        if "*" in resource:
            for role in ("AttemptRole", "ApiRole"):
                yield f"App/Functions/{role}", f"IAM5[Resource::{resource}]", "The option secretArns says so."
