"""Azure Blob Storage on loopback: the credentials that it takes."""

import traceback
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, quote

import pytest

from pyspark_sluice.tests.checkpoint_meta.storage.azure_server import ACCOUNT, KEY
from pyspark_sluice.tests.checkpoint_meta.storage.lake import Lake

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("any_server", ["azure"], indirect=True, scope="module"),
]


def signature(container, permission):
    from azure.storage.blob import generate_container_sas

    return generate_container_sas(
        ACCOUNT,
        container,
        account_key=KEY,
        permission=permission,
        expiry=datetime.now(UTC) + timedelta(hours=1),
        protocol="https,http",
    )


def test_a_connection_string_or_an_account_in_the_url_is_enough(any_server, any_bucket):
    host = f"{any_server.url}/{ACCOUNT}"
    text = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
    for name, location, options in (
        ("in/a", f"wasbs://{any_bucket}", {"connection_string": f"{text}BlobEndpoint={host};"}),
        (
            "in/b",
            f"abfss://{any_bucket}@{ACCOUNT}.dfs.core.windows.net",
            {"account_key": KEY, "account_host": host},
        ),
    ):
        lake = Lake(f"{location}/in", options)
        lake.create(name, b"x")
        assert any_server.get(any_bucket, name) == b"x"
        assert lake.url(name) == f"abfs://{any_bucket}/{name}"


def test_a_signature_needs_the_permissions_that_the_page_names(any_server, any_bucket):
    url = f"abfss://{any_bucket}/in"
    usual = {"account_name": ACCOUNT, "account_host": f"{any_server.url}/{ACCOUNT}"}
    state = Lake(url, {**usual, "sas_token": signature(any_bucket, "rwdl")})
    state.create("in/a", b"x")
    with pytest.raises(FileExistsError):
        state.create("in/a", b"y")
    state.create("in/b/1", b"y")
    state.delete_tree("in/b")
    state.copy("in/a", "in/c")
    data = Lake(url, {**usual, "sas_token": "?" + signature(any_bucket, "rl")})
    assert data.names("in") == ["a", "c"]
    assert data.whole("in/a") == b"x"
    with pytest.raises(PermissionError, match="AuthorizationPermissionMismatch"):
        data.create("in/d", b"")
    with pytest.raises(PermissionError):
        data.delete("in/a")
    assert any_server.keys(any_bucket) == ["in/a", "in/c"]


def test_no_error_tells_a_signature_which_is_in_every_url(any_server, any_bucket):
    signed = signature(any_bucket, "rl")
    options = {"account_name": ACCOUNT, "account_host": f"{any_server.url}/{ACCOUNT}"}
    once = {"retry_config": {"max_retries": 0}}
    lake = Lake(f"abfss://{any_bucket}/in", {**options, "sas_token": signed, **once})

    def told():
        for action in (lambda: lake.read("in/a"), lake.listed):
            with pytest.raises(OSError, match="/in") as caught:
                action()
            yield "".join(traceback.format_exception(caught.value))

    any_server.fail_next(any_server.slow_down, times=99)
    texts = [*told()]
    any_server.away()
    texts += told()
    any_server.back()
    assert len(texts) == 4
    secret = parse_qs(signed)["sig"][0]
    for text in texts:
        assert not any(form in text for form in ("sig=", secret, quote(secret, safe="")))


def test_directories_of_a_hierarchical_namespace_are_no_objects(any_server, any_bucket):
    """Azurite has none: this is what Microsoft's reference of List Blobs says."""
    blobs = "".join(
        f"<Blob><Name>{name}</Name><Properties><Last-Modified>Tue, 24 Nov 2026 01:27:38 GMT"
        f"</Last-Modified><Etag>0x1</Etag><ResourceType>{kind}</ResourceType><Content-Length>"
        f"{size}</Content-Length><Content-Type>a/b</Content-Type></Properties></Blob>"
        for name, kind, size in [
            ("in", "directory", 0),
            ("in/d", "directory", 0),
            ("in/d/a", "file", 3),
            ("in/d-e", "file", 3),
        ]
    )
    answer = f"<?xml version='1.0'?><EnumerationResults><Blobs>{blobs}</Blobs>"

    def listing(environ, respond):
        respond("200 OK", [("Content-Type", "application/xml")])
        return [f"{answer}<NextMarker /></EnumerationResults>".encode()]

    options = {"account_name": ACCOUNT, "account_key": KEY}
    lake = Lake(f"abfss://{any_bucket}/in", {**options, "account_host": f"{any_server.url}/x"})
    any_server.fail_next(listing, times=9, kind="LIST")
    assert lake.listed() == ["in/d/a", "in/d-e"]
