"""An asset of Dagster: the table of orders, with the report of the run as its metadata."""

import os

import dagster as dg

import pyspark_sluice

FEED = {name: os.environ[f"ORDERS_{name.upper()}"] for name in ("path", "checkpoint", "to")}


@dg.asset
def orders() -> dg.MaterializeResult:
    try:
        report = pyspark_sluice.run(**FEED, format="json")
    except pyspark_sluice.errors.SluiceError as error:
        if error.may_pass:
            raise dg.RetryRequested(max_retries=3, seconds_to_wait=60) from error
        raise dg.Failure(str(error), allow_retries=False) from error
    return dg.MaterializeResult(
        metadata={"rows": report.rows, "files": report.files, "run": report.summary.model_dump()}
    )


defs = dg.Definitions(assets=[orders])
