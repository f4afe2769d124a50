"""A monthly budget, so that a bill surprises nobody."""

from __future__ import annotations

from typing import Final

from aws_cdk import Aws
from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from sweephand.topology import Names

TAG: Final = "Deployment"
"""On everything of a deployment; the budget counts what carries it, once it is activated as a cost allocation tag."""


class Budget(Construct):
    """Told at 80 % of it, and when the month is going to be dearer."""

    def __init__(self, scope: Construct, id_: str, *, names: Names, topic: sns.Topic, dollars: int) -> None:
        super().__init__(scope, id_)
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("budgets.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            )
        )
        told = [budgets.CfnBudget.SubscriberProperty(subscription_type="SNS", address=topic.topic_arn)]
        budgets.CfnBudget(
            self,
            "Monthly",
            budget=budgets.CfnBudget.BudgetDataProperty(
                budget_name=f"{names.prefix}-{Aws.REGION}",
                budget_type="COST",
                time_unit="MONTHLY",
                budget_limit=budgets.CfnBudget.SpendProperty(amount=dollars, unit="USD"),
                cost_filters={"TagKeyValue": [f"user:{TAG}${names.prefix}"]},
            ),
            notifications_with_subscribers=[
                budgets.CfnBudget.NotificationWithSubscribersProperty(
                    notification=budgets.CfnBudget.NotificationProperty(
                        comparison_operator="GREATER_THAN",
                        notification_type=kind,
                        threshold=per_cent,
                        threshold_type="PERCENTAGE",
                    ),
                    subscribers=told,
                )
                for kind, per_cent in (("ACTUAL", 80), ("FORECASTED", 100))
            ],
        )
