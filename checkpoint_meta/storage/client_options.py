"""`storageOptions` for the client: the names that fsspec's file systems have, and its own.

A name that means nothing here is refused, never dropped: it may be what keeps data private.
Not here: requests (`bucket.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from ...errors import OptionError

SCHEMES: Final = {"s3": "s3", "gs": "gs", "gcs": "gs", "abfs": "az", "az": "az"}
"""Schemes of URLs -> the store they mean."""

CLIENT: Final = "client"
"""In storageOptions: `fsspec` leaves a bucket to fsspec's own file system."""

_OF_FSSPEC = (
    "asynchronous cache_regions cache_timeout check_connection consistency default_block_size "
    "default_cache_type default_fill_cache listings_expiry_time loop max_concurrency max_paths "
    "project skip_instance_cache use_listings_cache"
)
"""What only tunes fsspec's file systems: nothing here goes wrong without it."""

_RENAMED: Final[Mapping[str, Mapping[str, str]]] = {
    "s3": {
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
    "gs": {"endpoint_url": "base_url"},
    "az": {
        "sas_token": "sas_key",
        "anon": "skip_signature",
        "account_host": "endpoint",
    },
}

_OWN: Final = {
    "s3": "access_key_id secret_access_key session_token region endpoint skip_signature "
    "request_payer virtual_hosted_style_request server_side_encryption sse_kms_key_id "
    "sse_bucket_key_enabled checksum_algorithm unsigned_payload role_arn role_session_name "
    "sts_endpoint disable_bulk_delete web_identity_token_file metadata_endpoint imdsv1_fallback "
    "profile",
    "gs": "service_account service_account_key application_credentials base_url skip_signature",
    "az": "account_name account_key client_id client_secret tenant_id authority_host sas_key "
    "use_emulator endpoint msi_endpoint object_id msi_resource_id federated_token_file "
    "use_azure_cli skip_signature",
}
"""The client's own names."""

_TIMES: Final = ("timeout", "connect_timeout", "read_timeout")


@dataclass
class ClientConfig:
    """What the client of one store is made with."""

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
    """Of the shared configuration files, for S3."""


def uses_fsspec(storage_options: Mapping[str, Any]) -> bool:
    """True if buckets are fsspec's as well."""
    client = storage_options.get(CLIENT, "obstore")
    if client not in ("obstore", "fsspec"):
        raise OptionError(
            f"storageOptions: {CLIENT} names no client", "", repr(client), "obstore or fsspec"
        )
    return bool(client == "fsspec")


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
            "fsspec's package for this file system, on the driver and the executors",
        ) from error
    except (ValueError, TypeError) as error:
        raise OptionError(
            "fsspec cannot open this file system with these storageOptions",
            url,
            f"{type(error).__name__}: {error}",
            "a URL and options that it knows",
        ) from error
    return files, str(path)


def client_config(scheme: str, storage_options: Mapping[str, Any]) -> ClientConfig:
    """The configuration for the store that `scheme` means.

    Raises:
        OptionError: names every option that the client does not know.
    """
    store = SCHEMES[scheme]
    made = ClientConfig()
    unknown: list[str] = []
    for name, value in storage_options.items():
        if name in (CLIENT, *_OF_FSSPEC.split()) or value is None:
            continue
        if not _taken(store, name, value, made):
            unknown.append(name)
    if unknown:
        raise OptionError(
            f"storageOptions: not known to the client of {scheme}://",
            "",
            ", ".join(sorted(unknown)),
            ", ".join(sorted({*_OWN[store].split(), *_RENAMED[store], *_GROUPS})),
            f'Leave them out, or set "{CLIENT}": "fsspec" to hand all of it to fsspec.',
        )
    _finish(store, made)
    return made


def _taken(store: str, name: str, value: Any, made: ClientConfig) -> bool:
    if name in _GROUPS and isinstance(value, Mapping):
        return all(_GROUPS[name](store, part, inner, made) for part, inner in value.items())
    if name in _TIMES:
        made.connections[name] = _seconds(value)
    elif store == "gs" and name == "token":
        _google_token(value, made)
    elif store == "az" and name == "connection_string":
        _connection_string(str(value), made)
    elif store == "s3" and name == "use_ssl":
        made.connections["allow_http"] = not value
    elif store == "s3" and name == "profile":
        made.profile = str(value)
    else:
        own = _RENAMED[store].get(name, name)
        if own not in _OWN[store].split():
            return False
        made.store[own] = value
    return True


def _client_kwargs(store: str, name: str, value: Any, made: ClientConfig) -> bool:
    if name == "verify":
        made.connections["allow_invalid_certificates"] = value is False
        return isinstance(value, bool)
    return _taken(store, name, value, made)


def _config_kwargs(store: str, name: str, value: Any, made: ClientConfig) -> bool:
    if name == "read_timeout":
        made.connections["timeout"] = _seconds(value)
    elif name == "s3" and set(value) <= {"addressing_style"}:
        style = value.get("addressing_style")
        made.store["virtual_hosted_style_request"] = style == "virtual"
    elif name == "retries" and "max_attempts" in value:
        made.retries["max_retries"] = max(0, int(value["max_attempts"]) - 1)
    elif name == "signature_version":
        return str(value) in ("s3v4", "v4")
    elif name == "proxies" and value:
        made.connections["proxy_url"] = value.get("https") or value.get("http")
    elif name not in ("max_pool_connections", "user_agent", "user_agent_extra"):
        return _taken(store, name, value, made)
    return True


def _connections(_: str, name: str, value: Any, made: ClientConfig) -> bool:
    made.connections[name] = _seconds(value) if name.endswith("timeout") else value
    return True


def _retries(_: str, name: str, value: Any, made: ClientConfig) -> bool:
    if name == "max_retries":
        made.retries[name] = int(value)
    elif name == "retry_timeout":
        made.retries[name] = _seconds(value)
    else:
        return False
    return True


_GROUPS: Final[Mapping[str, Callable[[str, str, Any, ClientConfig], bool]]] = {
    "client_kwargs": _client_kwargs,
    "config_kwargs": _config_kwargs,
    "s3_additional_kwargs": _client_kwargs,
    "client_options": _connections,
    "retry_config": _retries,
}


def _seconds(value: Any) -> Any:
    """Numbers are seconds; texts such as `30s` are the client's to read."""
    return timedelta(seconds=value) if isinstance(value, int | float) else value


def _google_token(value: Any, made: ClientConfig) -> None:
    if isinstance(value, Mapping):
        made.store["service_account_key"] = json.dumps(dict(value))
    elif value == "anon":
        made.store["skip_signature"] = True
    elif value not in ("google_default", "cloud", "cache"):
        made.store["application_credentials"] = str(value)


def _connection_string(value: str, made: ClientConfig) -> None:
    names = {"AccountName": "account_name", "AccountKey": "account_key"}
    names |= {"SharedAccessSignature": "sas_key", "BlobEndpoint": "endpoint"}
    for part in value.split(";"):
        name, _, text = part.partition("=")
        if name in names:
            made.store[names[name]] = text


def _finish(store: str, made: ClientConfig) -> None:
    endpoint = made.store.get("base_url" if store == "gs" else "endpoint")
    if endpoint and store != "az" and urlsplit(str(endpoint)).scheme not in ("http", "https"):
        raise OptionError(
            "storageOptions: the endpoint is not a URL",
            "",
            str(endpoint),
            "a URL such as https://storage.example.com",
        )
    if endpoint and urlsplit(str(endpoint)).scheme == "http":
        made.connections["allow_http"] = True
    if made.store.get("request_payer") is False:
        del made.store["request_payer"]
