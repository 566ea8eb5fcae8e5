"""A flow of Prefect that reads new orders; Prefect repeats the task if that may help."""

import os

from prefect import flow, task

import pyspark_sluice

FEED = {name: os.environ[f"ORDERS_{name.upper()}"] for name in ("path", "checkpoint", "to")}


def may_pass(_task, _run, state) -> bool:
    error = state.result(raise_on_failure=False)
    return getattr(error, "may_pass", False)


@task(retries=3, retry_delay_seconds=60, retry_condition_fn=may_pass)
def ingest() -> int:
    return pyspark_sluice.run(**FEED, format="json").rows


@flow
def orders() -> int:
    return ingest()


if __name__ == "__main__":
    print(orders())
