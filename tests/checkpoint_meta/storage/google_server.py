"""The XML API of Google Cloud Storage on loopback: moto's S3, with what Google does differently.

Google documents that API as one that clients of S3 can use; this has Google's condition, its
credentials, and its answer to the deletion of an object that is not there, and refuses what only S3
knows. It is no emulator of Google's: none that can be installed has that API with conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from typing_extensions import override

from .s3_server import S3Server

_SOMEBODY = (
    "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, "
    "Signature=0"
)
"""moto refuses those who give no name, and asks for no proof of one."""


class GoogleServer(S3Server):
    """Buckets in the memory of this process, in which servers of S3 keep their own as well."""

    scheme = "gs"
    path_scheme = "gs"
    throttling = ("429 Too Many Requests", "SlowDown")

    def __init__(self) -> None:
        self._s3 = S3Server()
        super().__init__()

    @override
    def close(self) -> None:
        self._s3.close()
        super().close()

    @property
    @override
    def options(self) -> dict[str, Any]:
        return {"token": service_account(), "endpoint_url": self.url}

    @override
    def client(self, service: str = "s3") -> Any:
        """A client of a server of S3 that has the same buckets: this one refuses its requests."""
        return self._s3.client(service)

    @override
    def _served(self, environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        if any(name.startswith("HTTP_X_AMZ_") for name in environ):
            return self.refuse("400 Bad Request", "InvalidArgument")(environ, respond)
        if not environ.get("HTTP_AUTHORIZATION", "").startswith("Bearer "):
            return self.refuse("401 Unauthorized", "AuthenticationRequired")(environ, respond)
        environ["HTTP_AUTHORIZATION"] = _SOMEBODY
        if environ.get("HTTP_X_GOOG_IF_GENERATION_MATCH") == "0":
            environ["HTTP_IF_NONE_MATCH"] = "*"
        if "HTTP_X_GOOG_COPY_SOURCE" in environ:
            environ["HTTP_X_AMZ_COPY_SOURCE"] = environ.pop("HTTP_X_GOOG_COPY_SOURCE")
        path, mark, query = environ["REQUEST_URI"].partition("?")
        path = unquote(path)
        # The client quotes what need not be, in names of buckets as well.
        environ["REQUEST_URI"] = environ["RAW_URI"] = quote(path) + mark + query
        wanted = environ.pop("HTTP_X_GOOG_IF_GENERATION_MATCH", "")
        if environ["REQUEST_METHOD"] == "DELETE":
            _, bucket, key = path.split("/", 2)
            if key not in self.keys(bucket, key):
                return self.refuse("404 Not Found", "NoSuchKey")(environ, respond)
            if wanted not in (
                "",
                _generation(self.client().head_object(Bucket=bucket, Key=key)["ETag"]),
            ):
                failed = self.refuse("412 Precondition Failed", "PreconditionFailed")
                return failed(environ, respond)

        def responded(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            google = [(k, v) for k, v in headers if not k.lower().startswith("x-amz-")]
            etags = [v for k, v in headers if k.lower() == "etag"]
            google += [("x-goog-generation", _generation(etag)) for etag in etags]
            return respond(status, google, *rest)

        return super()._served(environ, responded)

    @override
    def _write(self, environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        # moto has the condition of a PUT, and ignores that of a copy.
        if {"HTTP_X_AMZ_COPY_SOURCE", "HTTP_IF_NONE_MATCH"} <= environ.keys():
            _, bucket, key = unquote(environ["REQUEST_URI"]).split("/", 2)
            if key in self.keys(bucket, key):
                return self.refuse("412 Precondition Failed", "PreconditionFailed")(
                    environ, respond
                )
        return super()._write(environ, respond)


def _generation(etag: str) -> str:
    """A number for each content; Google counts up."""
    return str(int.from_bytes(etag.strip('"').encode()[:7]))


@lru_cache(maxsize=1)
def service_account() -> dict[str, str]:
    """A key of nobody, in the form in which Google hands them out."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return {
        "type": "service_account",
        "private_key": text.decode(),
        "private_key_id": "1",
        "client_email": "query@project.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": "https://oauth2.googleapis.com/token",
    }
