"""A REST catalog of Iceberg that is overloaded: its requests are tried again."""

from __future__ import annotations

import http.server
import json
import threading
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest
from pyiceberg.types import LongType, NestedField

from pyspark_sluice import run
from pyspark_sluice.errors import OptionError, TableError

TO = "iceberg:busy.lake.orders"


class _Catalog(http.server.BaseHTTPRequestHandler):
    """One table of a catalog in a file, behind the protocol; `faults` are answered first."""

    catalog: SqlCatalog
    faults: list[int]
    """Status codes; 0 is an answer."""

    def log_message(self, *_):
        pass

    def _answer(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _respond(self):
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "/config" in self.path:
            return self._answer(200, {"defaults": {}, "overrides": {}})
        if self.faults and (code := self.faults.pop(0)):
            error = {"message": "busy", "type": "Busy", "code": code}
            return self._answer(error["code"], {"error": error})
        table = self.catalog.load_table("lake.orders")
        if self.command == "POST":
            request = CommitTableRequest.model_validate_json(data)
            self.catalog.commit_table(table, request.requirements, request.updates)
            table = self.catalog.load_table("lake.orders")
        metadata = json.loads(table.metadata.model_dump_json(by_alias=True, exclude_none=True))
        return self._answer(
            200, {"metadata-location": table.metadata_location, "metadata": metadata, "config": {}}
        )

    do_GET = do_POST = _respond  # noqa: N815


@pytest.fixture
def catalog(tmp_path, monkeypatch):
    (tmp_path / "w").mkdir()
    place = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": (tmp_path / "w").as_uri()}
    # Its answers come from other threads.
    behind = SqlCatalog("behind", **place, init_catalog_tables="true")
    behind.create_namespace("lake")
    behind.create_table("lake.orders", Schema(NestedField(1, "id", LongType())))
    handler = type("Handler", (_Catalog,), {"catalog": behind, "faults": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    from pyiceberg import catalog as catalogs
    from pyiceberg.utils.config import Config

    monkeypatch.setenv("PYICEBERG_CATALOG__BUSY__URI", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("PYICEBERG_CATALOG__BUSY__TYPE", "rest")
    # It is read when pyiceberg is imported.
    monkeypatch.setattr(catalogs, "_ENV_CONFIG", Config())
    yield handler
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("status", [503, 429, 500])
def test_a_catalog_that_is_busy_is_asked_again(catalog, tmp_path, status):
    (tmp_path / "in").mkdir()
    call: dict[str, Any] = {"checkpoint": str(tmp_path / "ck"), "format": "json", "to": TO}
    for number in (1, 2):
        (tmp_path / f"in/{number}.json").write_text(f'{{"id": {number}}}\n')
        catalog.faults.extend([status] * 3)
        run(str(tmp_path / "in"), **call)
        assert catalog.faults == []
    rows = catalog.catalog.load_table("lake.orders").scan().to_arrow()["id"].to_pylist()
    assert sorted(rows) == [1, 2]


def test_a_catalog_that_stays_busy_is_named_and_the_next_run_reads(catalog, tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/1.json").write_text('{"id": 1}\n')
    call: dict[str, Any] = {"checkpoint": str(tmp_path / "ck"), "format": "json", "to": TO}
    monkeypatch.setattr("time.sleep", lambda _: None)
    catalog.faults.extend([503] * 1000)
    with pytest.raises(TableError, match=r"the catalog does not respond.*start again"):
        run(str(tmp_path / "in"), **call)
    assert not (tmp_path / "ck").exists()
    catalog.faults.clear()
    run(str(tmp_path / "in"), **call)
    assert catalog.catalog.load_table("lake.orders").scan().to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize("status", [401, 404, 419])
@pytest.mark.parametrize("answered", [0, 1, 3, 6])
def test_a_catalog_that_refuses_is_named_and_the_next_run_reads(
    catalog, tmp_path, status, answered
):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/1.json").write_text('{"id": 1}\n')
    call: dict[str, Any] = {"checkpoint": str(tmp_path / "ck"), "format": "json", "to": TO}
    catalog.faults.extend([0] * answered + [status] * 1000)
    with pytest.raises((TableError, OptionError), match=r"lake\.orders"):
        run(str(tmp_path / "in"), **call)
    catalog.faults.clear()
    run(str(tmp_path / "in"), **call)
    assert catalog.catalog.load_table("lake.orders").scan().to_arrow()["id"].to_pylist() == [1]
