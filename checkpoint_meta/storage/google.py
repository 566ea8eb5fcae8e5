"""Calls of Google's cloud by its own libraries: deletions of one version, and queues.

Imported only where one of these is needed.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

from .providers import ClientConfig
from .storage_errors import error_of_status

_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"

_HOST: Final = "storage.googleapis.com"


def google_credentials(config: ClientConfig) -> Any:
    """A key from storageOptions or the environment; else the identity that Google's library finds.

    Raises:
        PermissionError: no credentials were found, or they cannot be read.
    """
    import google.auth
    from google.auth import credentials, exceptions
    from google.oauth2 import service_account

    if config.store.get("skip_signature"):
        return credentials.AnonymousCredentials()
    key = config.store.get("service_account_key") or os.environ.get("GOOGLE_SERVICE_ACCOUNT_KEY")
    path = config.store.get("service_account") or os.environ.get("GOOGLE_SERVICE_ACCOUNT")
    if path := path or config.store.get("application_credentials"):
        with open(path, encoding="utf-8") as file:
            key = file.read()
    try:
        if key and json.loads(key).get("type") == "service_account":
            own: Any = service_account.Credentials.from_service_account_info(json.loads(key))
            # Its own signature is enough: no request for a token.
            return own.with_scopes([_SCOPE]).with_always_use_jwt_access(True)
        if key:
            return google.auth.load_credentials_from_dict(json.loads(key), scopes=[_SCOPE])[0]
        return google.auth.default(scopes=[_SCOPE])[0]
    except (exceptions.GoogleAuthError, ValueError) as error:
        # Its text may repeat a part of a key.
        reason = f"no credentials for Google's cloud: {type(error).__name__}"
        raise PermissionError(errno.EACCES, reason, "storageOptions") from None


def version_deleter(bucket: str, config: ClientConfig) -> Callable[[str, str], None]:
    """Return what deletes a key if its generation is this one.

    It raises PermissionError, FileNotFoundError, AnotherVersion, or OSError for anything else.
    """
    import requests
    from google.auth import exceptions
    from google.auth.transport.requests import AuthorizedSession

    session = AuthorizedSession(google_credentials(config), default_host=_HOST)
    base = str(config.store.get("base_url") or f"https://{_HOST}")

    def delete(key: str, generation: str) -> None:
        where = f"gs://{bucket}/{key}"
        try:
            answer = session.delete(
                f"{base}/{bucket}/{quote(key)}",
                headers={"x-goog-if-generation-match": generation},
                timeout=15,
            )
        except (requests.RequestException, exceptions.GoogleAuthError) as error:
            raise OSError(errno.EIO, f"no answer: {type(error).__name__}", where) from error
        if not answer.ok:
            text = f"the store answered {answer.status_code}"
            raise error_of_status(answer.status_code, text, where)

    return delete
