"""A task of Airflow that reads new orders; Airflow repeats it if that may help."""

import os
from datetime import datetime

from airflow.exceptions import AirflowException, AirflowFailException
from airflow.sdk import dag, task

import pyspark_sluice

FEED = {name: os.environ[f"ORDERS_{name.upper()}"] for name in ("path", "checkpoint", "to")}


@dag(schedule="*/10 * * * *", start_date=datetime(2026, 1, 1), catchup=False, max_active_runs=1)
def orders():
    @task(retries=3)
    def ingest():
        try:
            return pyspark_sluice.run(**FEED, format="json").rows
        except pyspark_sluice.errors.SluiceError as error:
            kind = AirflowException if error.may_pass else AirflowFailException
            raise kind(str(error)) from error

    ingest()


orders()
