"""The two stacks of a deployment, and the checks that they pass before anything leaves this machine."""

from __future__ import annotations

from aws_cdk import Acknowledgment, App, Tags, Validations
from cdk_nag import AwsSolutionsChecks
from constructs import IConstruct

from infra.application import ApplicationStack
from infra.budget import TAG
from infra.console import built_site
from infra.containers import reviewed_images
from infra.data import DataStack
from infra.options import Options
from infra.reach import reviewed
from infra.reviewed import REVIEWED, reviewed_of


def build(app: App) -> None:
    """Add both stacks to the app; its context says how."""
    options = Options.from_context(app.node.get_all_context())
    title = "".join(part.capitalize() for part in options.name.split("-"))
    data = DataStack(app, f"{title}Data", options=options)
    ApplicationStack(app, f"{title}App", data=data, site=built_site(), options=options)
    Tags.of(app).add(TAG, options.name)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    for path, rule, reason in (
        *REVIEWED,
        *reviewed_of(options.secret_arns),
        *reviewed_images(options),
        *reviewed(options),
    ):
        # A resource of the other stack is named with the title, and those of ECS with the name.
        named = rule.replace("{title}", title).replace("{name}", options.name)
        meant = Acknowledgment(id=f"AwsSolutions::AwsSolutions-{named}", reason=reason)
        Validations.of(_at(app, f"{title}{path}")).acknowledge(meant)


def _at(app: App, path: str) -> IConstruct:
    """What has this path; it must be there."""
    place: IConstruct = app
    for part in path.split("/"):
        place = place.node.find_child(part)
    return place
