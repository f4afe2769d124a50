"""The one origin of console, API and live updates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_cloudfront as cloudfront
from aws_cdk import aws_cloudfront_origins as origins
from aws_cdk import aws_cognito as cognito
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.options import Options
from sweephand.topology import Names

_PAGES: Final = """
var files = %s, folders = %s;
function handler(event) {
  var request = event.request, parts = request.uri.split('/');
  var isFile = files.indexOf(request.uri) >= 0 || (parts.length > 2 && folders.indexOf(parts[1]) >= 0);
  if (!isFile) request.uri = '/index.html';
  return request;
}
"""
"""Pages of the console are made in the browser: every path that is no file is the same document. Files are those that
there are: ids of runs may have dots, as names of files do."""
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self' {sign_in}; worker-src 'self'; manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)
"""As on one machine; besides, the console fetches its tokens from the sign-in page's address."""
_PERMISSIONS: Final = "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"


class Front(Construct):
    """CloudFront before a private bucket and both APIs: nothing of them is cached, and no other origin is allowed."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        names: Names,
        rest_host: str,
        live_host: str,
        logs: s3.IBucket,
        site: Path,
        options: Options,
    ) -> None:
        super().__init__(scope, id_)
        self.sign_in = f"https://{_sign_in_prefix(names)}.auth.{Aws.REGION}.amazoncognito.com"
        # Only the built console. It stays when the stack goes: CloudFormation deletes no bucket that holds something.
        self.console = s3.Bucket(
            self,
            "Console",
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            removal_policy=RemovalPolicy.RETAIN,
        )
        self._headers = self._security_headers(names)
        given = bool(options.domain_name)
        self.distribution = cloudfront.Distribution(
            self,
            "Distribution",
            comment=f"Console, API and live updates of {names.prefix}",
            default_root_object="index.html",
            default_behavior=self._pages(site),
            additional_behaviors={"/api/*": self._uncached(rest_host), "/live": self._uncached(live_host)},
            minimum_protocol_version=cloudfront.SecurityPolicyProtocol.TLS_V1_2_2021 if given else None,
            http_version=cloudfront.HttpVersion.HTTP2_AND_3,
            price_class=cloudfront.PriceClass.PRICE_CLASS_100,
            enable_logging=True,
            log_bucket=logs,
            log_file_prefix="cloudfront/",
            domain_names=[options.domain_name] if given else None,
            certificate=acm.Certificate.from_certificate_arn(self, "Certificate", options.certificate_arn)
            if given
            else None,
        )
        self.address = f"https://{options.domain_name or self.distribution.distribution_domain_name}"

    def client(self, people: cognito.IUserPool, names: Names) -> cognito.UserPoolClient:
        """What the console signs people in with: a code with proof of possession, and no secret."""
        cognito.UserPoolDomain(
            self,
            "SignIn",
            user_pool=people,
            cognito_domain=cognito.CognitoDomainOptions(domain_prefix=_sign_in_prefix(names)),
        )
        client = cognito.UserPoolClient(
            self,
            "Client",
            user_pool=people,
            user_pool_client_name=names.of("console"),
            generate_secret=False,
            o_auth=cognito.OAuthSettings(
                flows=cognito.OAuthFlows(authorization_code_grant=True),
                scopes=[cognito.OAuthScope.OPENID, cognito.OAuthScope.EMAIL],
                callback_urls=[f"{self.address}/"],
                logout_urls=[f"{self.address}/"],
            ),
            access_token_validity=Duration.hours(1),
            id_token_validity=Duration.hours(1),
            refresh_token_validity=Duration.days(7),
            enable_token_revocation=True,
            prevent_user_existence_errors=True,
        )
        # By the property: where CDK is told of no way to sign in, Cognito allows all but the page's own.
        resource = client.node.default_child
        if isinstance(resource, cognito.CfnUserPoolClient):
            resource.explicit_auth_flows = ["ALLOW_REFRESH_TOKEN_AUTH"]
        return client

    def _pages(self, site: Path) -> cloudfront.BehaviorOptions:
        files = ["/config.json", *(f"/{path.name}" for path in sorted(site.iterdir()) if path.is_file())]
        folders = [path.name for path in sorted(site.iterdir()) if path.is_dir()]
        return cloudfront.BehaviorOptions(
            origin=origins.S3BucketOrigin.with_origin_access_control(self.console),
            viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.REDIRECT_TO_HTTPS,
            cache_policy=cloudfront.CachePolicy.CACHING_OPTIMIZED,
            response_headers_policy=self._headers,
            function_associations=[
                cloudfront.FunctionAssociation(
                    event_type=cloudfront.FunctionEventType.VIEWER_REQUEST,
                    function=cloudfront.Function(
                        self,
                        "Pages",
                        code=cloudfront.FunctionCode.from_inline(_PAGES % (json.dumps(files), json.dumps(folders))),
                        runtime=cloudfront.FunctionRuntime.JS_2_0,
                    ),
                )
            ],
        )

    def _uncached(self, host: str) -> cloudfront.BehaviorOptions:
        """The path goes through as it is: its first part is the name of the stage."""
        return cloudfront.BehaviorOptions(
            origin=origins.HttpOrigin(host, origin_ssl_protocols=[cloudfront.OriginSslPolicy.TLS_V1_2]),
            viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.HTTPS_ONLY,
            allowed_methods=cloudfront.AllowedMethods.ALLOW_ALL,
            cache_policy=cloudfront.CachePolicy.CACHING_DISABLED,
            origin_request_policy=cloudfront.OriginRequestPolicy.ALL_VIEWER_EXCEPT_HOST_HEADER,
            response_headers_policy=self._headers,
        )

    def _security_headers(self, names: Names) -> cloudfront.ResponseHeadersPolicy:
        return cloudfront.ResponseHeadersPolicy(
            self,
            "Headers",
            response_headers_policy_name=f"{names.prefix}-{Aws.REGION}",
            security_headers_behavior=cloudfront.ResponseSecurityHeadersBehavior(
                content_security_policy=cloudfront.ResponseHeadersContentSecurityPolicy(
                    content_security_policy=_POLICY.format(sign_in=self.sign_in), override=False
                ),
                content_type_options=cloudfront.ResponseHeadersContentTypeOptions(override=True),
                frame_options=cloudfront.ResponseHeadersFrameOptions(
                    frame_option=cloudfront.HeadersFrameOption.DENY, override=True
                ),
                referrer_policy=cloudfront.ResponseHeadersReferrerPolicy(
                    referrer_policy=cloudfront.HeadersReferrerPolicy.NO_REFERRER, override=True
                ),
                strict_transport_security=cloudfront.ResponseHeadersStrictTransportSecurity(
                    access_control_max_age=Duration.days(365), include_subdomains=True, override=True
                ),
            ),
            custom_headers_behavior=cloudfront.ResponseCustomHeadersBehavior(
                custom_headers=[
                    cloudfront.ResponseCustomHeader(header=name, value=value, override=True)
                    for name, value in (
                        ("cross-origin-opener-policy", "same-origin"),
                        ("cross-origin-resource-policy", "same-origin"),
                        ("permissions-policy", _PERMISSIONS),
                    )
                ]
            ),
        )


def _sign_in_prefix(names: Names) -> str:
    """Names of sign-in pages are shared by everybody in a region."""
    return f"{names.prefix}-{Aws.ACCOUNT_ID}"
