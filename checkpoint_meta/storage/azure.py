"""Calls of Azure by Microsoft's own clients: queues, and deletions of one version.

Imported only where one of these is needed.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from ...masking import masked
from .providers import ClientConfig
from .storage_errors import error_of_status

_ENVIRONMENT: Final = {
    "account_name": "AZURE_STORAGE_ACCOUNT_NAME",
    "account_key": "AZURE_STORAGE_ACCOUNT_KEY",
    "sas_key": "AZURE_STORAGE_SAS_TOKEN",
    "endpoint": "AZURE_STORAGE_ENDPOINT",
}
"""The place where the store's client finds what the options do not have."""


def azure_credential(config: ClientConfig, account: str) -> Any:
    """A key or a signature from storageOptions; else an identity, as azure-identity finds it."""
    if key := _setting(config, "account_key"):
        return {"account_name": account, "account_key": key}
    if signature := _setting(config, "sas_key"):
        return signature.removeprefix("?")
    from azure.identity import ClientSecretCredential, DefaultAzureCredential

    names = ("tenant_id", "client_id", "client_secret")
    if all(name in config.store for name in names):
        return ClientSecretCredential(*(str(config.store[name]) for name in names))
    return DefaultAzureCredential()


def version_deleter(container: str, config: ClientConfig) -> Callable[[str, str], None]:
    """Return what deletes a key if its etag is this one; errors are those of `as_os_errors`."""
    from azure.core import MatchConditions
    from azure.core.exceptions import ResourceModifiedError
    from azure.storage.blob import ContainerClient

    account = _setting(config, "account_name")
    endpoint = _setting(config, "endpoint") or f"https://{account}.blob.core.windows.net"
    client = ContainerClient(
        endpoint if "://" in endpoint else f"https://{endpoint}",
        container,
        credential=azure_credential(config, account),
        **QUICK,
    )

    def delete(key: str, etag: str) -> None:
        condition = MatchConditions.IfNotModified
        with as_os_errors(f"abfs://{container}/{key}"):
            try:
                client.delete_blob(key, etag=f'"{etag}"', match_condition=condition)
            except ResourceModifiedError:
                # No object is another version to the service.
                if client.get_blob_client(key).exists():
                    raise

    return delete


QUICK: Final[Mapping[str, Any]] = {
    # The caller retries for longer, and counts.
    "retry_total": 1,
    "initial_backoff": 1,
    "increment_base": 1,
    "connection_timeout": 10,
    "read_timeout": 30,
}
"""Microsoft's names for the patience of its clients."""


def _setting(config: ClientConfig, name: str) -> str:
    return str(config.store.get(name) or os.environ.get(_ENVIRONMENT[name], ""))


@contextmanager
def as_os_errors(where: str) -> Iterator[None]:
    """Raise what Microsoft's clients raise as errors of the operating system, which name `where`.

    Raises:
        PermissionError: there is no identity, or it is not permitted.
        FileNotFoundError: there is no such queue, container or object.
        AnotherVersion: the object is not the version that was asked for.
        OSError: anything else, after the client's own retries.
    """
    from azure.core import exceptions

    try:
        yield
    except exceptions.HttpResponseError as error:
        if error.status_code is None:
            # Of azure-identity: no request was made, since there is no identity.
            raise PermissionError(errno.EACCES, masked(str(error)), where) from None
        # The service's own text repeats what was signed.
        text = f"the service answered {error.status_code} ({error_code(error)})"
        raise error_of_status(error.status_code, text, where) from None
    except exceptions.AzureError as error:
        # A signature is a part of the address.
        text = re.sub(r"\?\S*", "", masked(str(error)))
        raise OSError(errno.EIO, text, where) from None


def error_code(error: Any) -> str:
    """Return the service's name for an error."""
    # An enumeration where the client knows the code, otherwise text.
    code = getattr(error, "error_code", "") or ""
    return str(getattr(code, "value", code))
