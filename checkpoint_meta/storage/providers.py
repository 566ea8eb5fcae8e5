"""One record for each object store: everything that differs between stores is in it.

A store that the client knows too is added by its record alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final


@dataclass
class ClientConfig:
    """The configuration of the client of one store."""

    store: dict[str, Any] = field(default_factory=dict)
    """Keys, region, endpoint."""

    connections: dict[str, Any] = field(
        default_factory=lambda: {
            # A part of an object is 8 MiB at most, so a request that takes longer has stalled.
            "timeout": timedelta(seconds=15),
            "connect_timeout": timedelta(seconds=5),
        }
    )
    retries: dict[str, Any] = field(
        default_factory=lambda: {
            # Time is the limit. A delay is drawn between the first one and `base` times the one
            # before, so ten of them can be over within two seconds.
            "max_retries": 1_000,
            "retry_timeout": timedelta(seconds=15),
            "backoff": {
                "init_backoff": timedelta(milliseconds=100),
                "max_backoff": timedelta(seconds=3),
                "base": 3,
            },
        }
    )
    profile: str = ""
    """A profile of the shared configuration files, for S3."""


@dataclass(frozen=True)
class Provider:
    """One kind of object store."""

    client: str
    """The class in `obstore.store`."""

    schemes: Mapping[str, str]
    """What URLs may begin with -> fsspec's name for that; Hadoop's names are among them."""

    path_scheme: str
    """With what fsspec's file system writes its own paths, by which files are known."""

    extra: str
    """The extra of this package that installs the client."""

    create: str
    """Why a create of an object that exists fails, so that state may be kept there."""

    options: str
    """The client's own names in `storageOptions`, with spaces between."""

    renamed: Mapping[str, str]
    """fsspec's names -> the client's."""

    special: Mapping[str, Callable[[Any, ClientConfig], None]] = field(default_factory=dict)
    """Names in `storageOptions` that say more than one thing, or that are not the store's."""

    endpoint: str = "endpoint"
    """Which of `options` is the server's URL."""

    has_bare_endpoint: bool = False
    """True if that may be a host without a scheme."""

    lists_in_order: bool = True
    """True if listings have the order of the keys' bytes, and start where they are asked to."""


def _use_ssl(value: Any, config: ClientConfig) -> None:
    config.connections["allow_http"] = not value


def _profile(value: Any, config: ClientConfig) -> None:
    config.profile = str(value)


def _google_token(value: Any, config: ClientConfig) -> None:
    if isinstance(value, Mapping):
        config.store["service_account_key"] = json.dumps(dict(value))
    elif value == "anon":
        config.store["skip_signature"] = True
    # With these gcsfs looks for credentials by itself, as the client does without any.
    elif value not in ("google_default", "cloud", "cache"):
        config.store["application_credentials"] = str(value)


def _connection_string(value: Any, config: ClientConfig) -> None:
    names = {"AccountName": "account_name", "AccountKey": "account_key"}
    names |= {"SharedAccessSignature": "sas_key", "BlobEndpoint": "endpoint"}
    for part in str(value).split(";"):
        # Only the first =, since keys in Base64 may end in others.
        name, _, text = part.partition("=")
        if name in names:
            config.store[names[name]] = text


S3: Final = Provider(
    client="S3Store",
    schemes={"s3": "s3", "s3a": "s3", "s3n": "s3"},
    path_scheme="s3",
    extra="s3",
    create="a PUT with If-None-Match: *; s3fs may end a multipart upload with it instead",
    options=(
        "access_key_id secret_access_key session_token region endpoint skip_signature "
        "request_payer virtual_hosted_style_request server_side_encryption sse_kms_key_id "
        "sse_bucket_key_enabled checksum_algorithm unsigned_payload role_arn role_session_name "
        "sts_endpoint disable_bulk_delete web_identity_token_file metadata_endpoint "
        "imdsv1_fallback profile"
    ),
    renamed={
        "key": "access_key_id",
        "username": "access_key_id",
        "aws_access_key_id": "access_key_id",
        "secret": "secret_access_key",
        "password": "secret_access_key",
        "aws_secret_access_key": "secret_access_key",
        "token": "session_token",
        "aws_session_token": "session_token",
        "endpoint_url": "endpoint",
        "region_name": "region",
        "anon": "skip_signature",
        "requester_pays": "request_payer",
        "ServerSideEncryption": "server_side_encryption",
        "SSEKMSKeyId": "sse_kms_key_id",
        "BucketKeyEnabled": "sse_bucket_key_enabled",
    },
    special={"use_ssl": _use_ssl, "profile": _profile},
)

GOOGLE: Final = Provider(
    client="GCSStore",
    schemes={"gs": "gs", "gcs": "gcs"},
    path_scheme="gs",
    extra="gcs",
    create="an upload with ifGenerationMatch=0",
    options=("service_account service_account_key application_credentials base_url skip_signature"),
    renamed={"endpoint_url": "base_url"},
    special={"token": _google_token},
    endpoint="base_url",
)

AZURE: Final = Provider(
    client="AzureStore",
    schemes={"abfs": "abfs", "az": "az", "abfss": "abfs", "wasbs": "abfs"},
    path_scheme="abfs",
    extra="azure",
    create="a PUT with If-None-Match: *",
    options=(
        "account_name account_key client_id client_secret tenant_id authority_host sas_key "
        "use_emulator endpoint msi_endpoint object_id msi_resource_id federated_token_file "
        "use_azure_cli skip_signature"
    ),
    renamed={"sas_token": "sas_key", "anon": "skip_signature", "account_host": "endpoint"},
    special={"connection_string": _connection_string},
    has_bare_endpoint=True,
    # It orders by UTF-16, its hierarchical namespaces by parts of the key; and a listing starts at
    # a name only since a version of the service that the client does not ask for.
    lists_in_order=False,
)

PROVIDERS: Final = (S3, GOOGLE, AZURE)

BY_SCHEME: Final[Mapping[str, Provider]] = {
    scheme: provider for provider in PROVIDERS for scheme in provider.schemes
}
"""What a URL may begin with -> its store."""

FSSPEC_SCHEMES: Final[Mapping[str, str]] = {
    scheme: own for provider in PROVIDERS for scheme, own in provider.schemes.items()
}
"""What a URL may begin with -> fsspec's name for it."""
