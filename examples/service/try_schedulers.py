"""Runs the tasks of this folder in their schedulers, each in an environment of its own.

    python examples/service/try_schedulers.py [airflow] [dagster] [prefect]

Each reads one file into a table, then meets a file that is no JSON: a person is needed, so the task
must fail at its first attempt. The package is installed from this checkout, the schedulers from
PyPI: hundreds of megabytes, some minutes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]

SCHEDULERS = {
    "airflow": (
        "apache-airflow>=3",
        ["airflow", "dags", "test", "orders"],
    ),
    "dagster": (
        "dagster",
        ["dagster", "asset", "materialize", "--select", "*", "-m", "dagster_asset"],
    ),
    "prefect": ("prefect>=3", ["python", "prefect_flow.py"]),
}
"""Name -> what to install, and how its task is run."""


def main() -> int:
    """Try the named schedulers, or all; the number of those that failed."""
    return sum(not _tried(name) for name in sys.argv[1:] or SCHEDULERS)


def _tried(name: str) -> bool:
    package, call = SCHEDULERS[name]
    with tempfile.TemporaryDirectory(prefix="sluice-scheduler-") as folder:
        root = Path(folder)
        # Where others have made the environment already, it is used.
        home = Path(os.environ.get("SCHEDULERS", folder)) / name
        if not home.exists():
            venv.create(home, with_pip=True)
            pip = [str(home / "bin/pip"), "install", "--quiet", package, f"{CHECKOUT}[tables]"]
            subprocess.run(pip, check=True)
        (root / "in").mkdir()
        environment = {
            **{key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
            "ORDERS_PATH": str(root / "in"),
            "ORDERS_CHECKPOINT": str(root / "checkpoint"),
            "ORDERS_TO": f"delta:{root / 'table'}",
            "AIRFLOW_HOME": str(root / "airflow"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
            "AIRFLOW__CORE__DAGS_FOLDER": str(root / "dags"),
            "PREFECT_HOME": str(root / "prefect"),
            "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
            "DO_NOT_TRACK": "1",
        }
        binary, *arguments = call
        command = [str(home / "bin" / binary), *arguments]
        if name == "airflow":
            (root / "dags").mkdir()
            shutil.copy(HERE / "airflow_dag.py", root / "dags")
            for prepare in (["db", "migrate"], ["dags", "reserialize"]):
                airflow = [str(home / "bin/airflow"), *prepare]
                subprocess.run(airflow, env=environment, check=True, capture_output=True)

        def run() -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                command, env=environment, cwd=HERE, capture_output=True, text=True, check=False
            )

        (root / "in/1.json").write_text('{"order_id": 1}\n{"order_id": 2}\n')
        first = run()
        count = "from deltalake import DeltaTable; print(DeltaTable(r'%s').count())" % (
            root / "table"
        )
        counted = subprocess.run(
            [str(home / "bin/python"), "-c", count], capture_output=True, text=True, check=False
        )
        (root / "in/2.json").write_text("{no JSON\n")
        second = run()
        told = second.stdout + second.stderr
        is_right = counted.stdout.strip() == "2" and "MalformedDataError" in told
        print(f"{name}: {'right' if is_right else 'WRONG'}: {counted.stdout.strip()} rows")
        if not is_right:
            print(first.stdout[-2000:], first.stderr[-2000:], told[-2000:], sep="\n")
        return is_right


if __name__ == "__main__":
    sys.exit(main())
