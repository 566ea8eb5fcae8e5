"""`sluice run` reads every format without an option that says more about it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from pyspark_sluice.connector.cli.app import app
from pyspark_sluice.connector.options.call import inferred_types

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("file_format", ["text", "binaryFile", "TEXT", "json", "parquet"])
def test_the_schema_of_a_format_may_be_left_out(tmp_path, file_format):
    landing, table = tmp_path / "landing", tmp_path / "table"
    landing.mkdir()
    if file_format == "parquet":
        pq.write_table(pa.table({"id": [1]}), landing / "a")
    else:
        (landing / "a").write_text('{"id": 1}\n')
    call = ["run", str(landing), "--to", f"delta:{table}", "--format", file_format]
    call += ["--checkpoint", str(tmp_path / "checkpoint")]
    outcome = CliRunner().invoke(app, call)
    assert outcome.exit_code == 0, outcome.output
    assert " 1 row in" in outcome.output


def test_a_format_of_your_own_is_asked_for_no_types():
    assert inferred_types("package.module:Format") == {}
    assert inferred_types("Feather") == inferred_types("arrow") == {"inferColumnTypes": "true"}
