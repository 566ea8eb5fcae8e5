"""The clients of object stores: a record for each store, and what `storageOptions` mean to them.

A store that the client knows too is added by its record alone. `storageOptions` may have the names
of fsspec's file systems, and the client's own. A name that means nothing here is refused, never
dropped: it may be what keeps data private.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from ...errors import OptionError, is_installed, not_installed


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


CLIENT: Final = "client"
"""In storageOptions: `fsspec` leaves a bucket to fsspec's own file system."""

_OF_FSSPEC = (
    "asynchronous cache_regions cache_timeout check_connection consistency default_block_size "
    "default_cache_type default_fill_cache listings_expiry_time loop max_concurrency max_paths "
    "project skip_instance_cache use_listings_cache"
)
"""Settings that only tune fsspec's file systems: nothing goes wrong without them."""

_TIMES: Final = ("timeout", "connect_timeout", "read_timeout")


def uses_fsspec(storage_options: Mapping[str, Any]) -> bool:
    """True if buckets are fsspec's as well."""
    client = storage_options.get(CLIENT, "obstore")
    if client not in ("obstore", "fsspec"):
        raise OptionError(
            f"storageOptions: {CLIENT} is not a known client", "", repr(client), "obstore or fsspec"
        )
    return bool(client == "fsspec")


def check_installed(package: str, extra: str, url: str) -> None:
    """Raise OptionError unless the client of a file system is installed."""
    if not is_installed(package):
        client = f"the client for {urlsplit(url).scheme}://"
        raise not_installed(f"{client} is not installed", url, package, extra)


def check_known(
    scheme: str, where: str, unknown: Iterable[str], known: str, remedy: str = ""
) -> None:
    """Raise OptionError if there are `unknown` storageOptions; `known` are those that there are."""
    if names := ", ".join(sorted(unknown)):
        raise OptionError(
            f"storageOptions: not known to the client of {scheme}://", where, names, known, remedy
        )


def by_fsspec(url: str, storage_options: Mapping[str, Any]) -> tuple[Any, str]:
    """The file system of a URL by fsspec, and the path there; no listing comes from its memory.

    Raises:
        OptionError: fsspec does not know it, a package is missing, or options do not fit.
    """
    # It takes as long to import as pyarrow, and most data are in directories and buckets.
    import fsspec

    rest = {name: value for name, value in storage_options.items() if name != CLIENT}
    try:
        files, path = fsspec.url_to_fs(url, **{"use_listings_cache": False, **rest})
    except ImportError as error:
        raise OptionError(
            f"the package for {urlsplit(url).scheme}:// is not installed",
            url,
            str(error),
            "the package for this file system, for fsspec, on the driver and the executors",
        ) from error
    except (ValueError, TypeError) as error:
        raise OptionError(
            "fsspec cannot open this file system with these storageOptions",
            url,
            f"{type(error).__name__}: {error}",
            "a URL and options that it supports",
        ) from error
    return files, str(path)


def client_config(scheme: str, storage_options: Mapping[str, Any]) -> ClientConfig:
    """The configuration for the store that `scheme` means.

    Raises:
        OptionError: names every option that the client does not know.
    """
    store = BY_SCHEME[scheme]
    config = ClientConfig()
    unknown: list[str] = []
    for name, value in storage_options.items():
        # None is the default of most options of fsspec, and asks for nothing.
        if name in (CLIENT, *_OF_FSSPEC.split()) or value is None:
            continue
        if not _taken(store, name, value, config):
            unknown.append(name)
    known = ", ".join(sorted({*store.options.split(), *store.renamed, *_GROUPS}))
    remedy = f'Leave them out, or set "{CLIENT}": "fsspec" to pass all of them to fsspec.'
    check_known(scheme, "", unknown, known, remedy)
    _finish(store, config)
    return config


def _taken(store: Provider, name: str, value: Any, config: ClientConfig) -> bool:
    if name in _GROUPS and isinstance(value, Mapping):
        return all(_GROUPS[name](store, part, inner, config) for part, inner in value.items())
    if name in _TIMES:
        config.connections[name] = _seconds(value)
    elif name in store.special:
        store.special[name](value, config)
    else:
        own = store.renamed.get(name, name)
        if own not in store.options.split():
            return False
        config.store[own] = value
    return True


def _client_kwargs(store: Provider, name: str, value: Any, config: ClientConfig) -> bool:
    if name == "verify":
        config.connections["allow_invalid_certificates"] = value is False
        return isinstance(value, bool)
    return _taken(store, name, value, config)


def _config_kwargs(store: Provider, name: str, value: Any, config: ClientConfig) -> bool:
    if name == "read_timeout":
        config.connections["timeout"] = _seconds(value)
    elif name == "s3" and set(value) <= {"addressing_style"}:
        style = value.get("addressing_style")
        config.store["virtual_hosted_style_request"] = style == "virtual"
    elif name == "retries" and "total_max_attempts" in value:
        # In botocore this one counts the first attempt and takes precedence, in every mode.
        config.retries["max_retries"] = max(0, int(value["total_max_attempts"]) - 1)
    elif name == "retries" and "max_attempts" in value:
        config.retries["max_retries"] = int(value["max_attempts"])
    elif name == "signature_version":
        # The client only signs by version 4: anything else would be dropped silently.
        return str(value) in ("s3v4", "v4")
    elif name == "proxies" and value:
        config.connections["proxy_url"] = value.get("https") or value.get("http")
    # These three tune boto3 alone; nothing goes wrong without them.
    elif name not in ("max_pool_connections", "user_agent", "user_agent_extra"):
        return _taken(store, name, value, config)
    return True


def _connections(_: Provider, name: str, value: Any, config: ClientConfig) -> bool:
    config.connections[name] = _seconds(value) if name.endswith("timeout") else value
    return True


def _retries(_: Provider, name: str, value: Any, config: ClientConfig) -> bool:
    if name == "max_retries":
        config.retries[name] = int(value)
    elif name == "retry_timeout":
        config.retries[name] = _seconds(value)
    else:
        return False
    return True


_GROUPS: Final[Mapping[str, Callable[[Provider, str, Any, ClientConfig], bool]]] = {
    "client_kwargs": _client_kwargs,
    "config_kwargs": _config_kwargs,
    "s3_additional_kwargs": _client_kwargs,
    "client_options": _connections,
    "retry_config": _retries,
}


def _seconds(value: Any) -> Any:
    """Numbers are seconds; texts such as `30s` are the client's to read."""
    return timedelta(seconds=value) if isinstance(value, int | float) else value


def _finish(store: Provider, config: ClientConfig) -> None:
    endpoint = config.store.get(store.endpoint)
    if (
        endpoint
        and not store.has_bare_endpoint
        and urlsplit(str(endpoint)).scheme not in ("http", "https")
    ):
        raise OptionError(
            "storageOptions: the endpoint is not a URL",
            "",
            str(endpoint),
            "a URL such as https://storage.example.com",
        )
    # The client refuses plain HTTP unless it is permitted; an endpoint says so by itself.
    if store is S3:
        endpoint = endpoint or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint and urlsplit(str(endpoint)).scheme == "http":
        config.connections["allow_http"] = True
    if config.store.get("request_payer") is False:
        del config.store["request_payer"]
