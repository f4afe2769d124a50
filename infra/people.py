"""The people who may sign in."""

from __future__ import annotations

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_cognito as cognito
from constructs import Construct

from sweephand.topology import Names


class People(cognito.UserPool):
    """Nobody signs up: people are added by whoever operates the deployment, and get their roles per namespace."""

    def __init__(self, scope: Construct, id_: str, *, names: Names) -> None:
        super().__init__(
            scope,
            id_,
            user_pool_name=names.prefix,
            self_sign_up_enabled=False,
            sign_in_aliases=cognito.SignInAliases(username=True, email=True),
            auto_verify=cognito.AutoVerifiedAttrs(email=True),
            account_recovery=cognito.AccountRecovery.EMAIL_ONLY,
            mfa=cognito.Mfa.OPTIONAL,
            mfa_second_factor=cognito.MfaSecondFactor(otp=True, sms=False),
            password_policy=cognito.PasswordPolicy(
                min_length=12,
                require_digits=True,
                require_lowercase=True,
                require_uppercase=True,
                require_symbols=True,
                temp_password_validity=Duration.days(3),
            ),
            deletion_protection=True,
            removal_policy=RemovalPolicy.RETAIN,
        )
        self.issuer = f"https://cognito-idp.{Aws.REGION}.{Aws.URL_SUFFIX}/{self.user_pool_id}"
