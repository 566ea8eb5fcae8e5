"""What all tests share: hypothesis profiles, and one Spark session for each process."""

from __future__ import annotations

import gc
import os
import random
import sys
import uuid
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from pyspark_sluice.tests import answers
from pyspark_sluice.tests.spark_home import use_a_quick_home
from pyspark_sluice.tests.thorough import (
    AZURE,
    GOOGLE,
    HDFS,
    mark_what_is_not_sampled,
    without_reason,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from pyspark_sluice.tests.answers import AnswerFile, SparkAnswers
    from pyspark_sluice.tests.checkpoint_meta.storage.azure_server import Azurite
    from pyspark_sluice.tests.checkpoint_meta.storage.faulty_server import FaultyServer
    from pyspark_sluice.tests.checkpoint_meta.storage.mini_hdfs import MiniHdfs
    from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import S3Server

use_a_quick_home()

# Tests are collected in two thirds of the time, and what is collected stays to the end.
gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage again, and never in modules and tests."""
    gc.enable()
    gc.freeze()


# dev: a person waits. ci: the same examples every time, as a regression test. thorough: more of
# them, also the same every time. nightly: a search.
# A strategy that filters much is a matter of the strategy's speed as well.
_SLOW_MACHINE = [HealthCheck.too_slow, HealthCheck.filter_too_much]
settings.register_profile(
    "dev", max_examples=50, deadline=None, suppress_health_check=_SLOW_MACHINE
)
settings.register_profile(
    "ci", max_examples=20, deadline=None, derandomize=True, suppress_health_check=_SLOW_MACHINE
)
settings.register_profile(
    "thorough",
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=_SLOW_MACHINE,
)
settings.register_profile(
    "nightly",
    max_examples=2000,
    stateful_step_count=100,
    deadline=None,
    print_blob=True,
    suppress_health_check=_SLOW_MACHINE,
)
_PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")
settings.load_profile(_PROFILE)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed when nobody else did, so that it is printed before the first test."""
    if config.getoption("hypothesis_seed", None) is None and not settings().derandomize:
        config.option.hypothesis_seed = str(random.SystemRandom().getrandbits(32))


def pytest_report_header(config: pytest.Config) -> str:
    """Name the profile and how to repeat the run."""
    seed = config.getoption("hypothesis_seed", None)
    chosen = f"--hypothesis-seed={seed}" if seed else "derandomized"
    return f"property tests: HYPOTHESIS_PROFILE={_PROFILE}, {chosen}"


# pytest-xdist reads the groups in the same hook.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what asks for the session or for a server, and say which tests share a process.

    With the session, or next to one another: Spark's drivers, so that few run at once. Of all other
    tests those of a module, whose fixtures they share. What takes longest begins first.
    """
    order = {"drivers": 0, "session": 1}
    places: dict[pytest.Item, int] = {}
    for item in items:
        asked = getattr(item, "fixturenames", ())
        if "spark_answers" in asked:
            item.add_marker(pytest.mark.answers)
        if "spark" in asked or ("spark_answers" in asked and answers.SOURCE != "recorded"):
            item.add_marker(pytest.mark.spark)
        if "server" in asked or "any_server" in asked:
            # Importing moto alone takes a second.
            item.add_marker(pytest.mark.slow)
        callspec = getattr(item, "callspec", None)
        server = callspec and callspec.params.get("any_server")
        if "hdfs" in asked:
            item.add_marker(HDFS)
        if server == "azure" or "azurite" in asked or "azurite_queues" in asked:
            item.add_marker(AZURE)
        group = _group(item)
        places[item] = order.get(group, 2)
        item.add_marker(pytest.mark.xdist_group(group))
    mark_what_is_not_sampled(items)
    unexplained = without_reason(items)
    if unexplained:
        msg = f"each `thorough` needs one text, why `make test` does without: {unexplained}"
        raise pytest.UsageError(msg)
    items.sort(key=places.__getitem__)


def _group(item: pytest.Item) -> str:
    if item.get_closest_marker("drivers") is not None:
        return "drivers"
    if item.get_closest_marker("spark") is not None:
        return "session"
    if "hdfs" in getattr(item, "fixturenames", ()):
        # One cluster for all of them.
        return "hdfs"
    return item.nodeid.partition("::")[0]


@pytest.fixture(scope="session")
def servers() -> Iterator[dict[str, FaultyServer]]:
    """Those that have begun in this process, and serve all of its tests."""
    begun: dict[str, FaultyServer] = {}
    yield begun
    for each in begun.values():
        each.close()


@pytest.fixture(autouse=True)
def _sound_servers(request: pytest.FixtureRequest) -> Iterator[None]:
    """No fault outlives its test."""
    yield
    if "servers" in request.fixturenames:
        for each in request.getfixturevalue("servers").values():
            each.fault, each.most_keys = None, 0


@pytest.fixture(scope="session")
def server(servers: dict[str, FaultyServer]) -> S3Server:
    """S3 and SQS on loopback."""
    pytest.importorskip("moto")
    from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import S3Server

    made = servers["s3"] = S3Server()
    return made


@pytest.fixture
def bucket(server: S3Server) -> str:
    """The name of a fresh bucket on a server without faults."""
    server.fault = None
    name = f"lake-{uuid.uuid4().hex[:12]}"
    server.client().create_bucket(Bucket=name)
    return name


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    """Azure Blob Storage on loopback."""
    yield from _azurite("blob", tmp_path_factory.mktemp("azurite"))


@pytest.fixture(scope="session")
def azurite_queues(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    """Azure's Storage Queues on loopback, a process of their own."""
    yield from _azurite("queue", tmp_path_factory.mktemp("azurite-queues"))


def _azurite(kind: str, folder: Path) -> Iterator[Azurite]:
    """Start the emulator; skip where neither it nor Node.js and npm are there."""
    from pyspark_sluice.tests.checkpoint_meta.storage.azure_server import Azurite, azurite_command

    try:
        command = azurite_command(kind)
    except LookupError as error:
        pytest.skip(str(error))
    made = Azurite(command, folder, kind)
    yield made
    made.close()


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MiniHdfs]:
    """A NameNode and two DataNodes on loopback."""
    from pyspark_sluice.tests.checkpoint_meta.storage.mini_hdfs import MiniHdfs, mini_hdfs_command

    cluster = MiniHdfs(mini_hdfs_command(), tmp_path_factory.mktemp("hdfs"))
    yield cluster
    cluster.close()


@pytest.fixture(
    scope="module",
    params=["s3", pytest.param("google", marks=GOOGLE), pytest.param("azure", marks=AZURE)],
)
def any_server(request: pytest.FixtureRequest, servers: dict[str, FaultyServer]) -> FaultyServer:
    """Each of the object stores on loopback."""
    pytest.importorskip("moto")
    from pyspark_sluice.tests.checkpoint_meta.storage.azure_server import AzureServer
    from pyspark_sluice.tests.checkpoint_meta.storage.google_server import GoogleServer

    if request.param == "s3":
        return request.getfixturevalue("server")
    if request.param not in servers:
        servers[request.param] = (
            GoogleServer()
            if request.param == "google"
            else AzureServer(request.getfixturevalue("azurite"))
        )
    return servers[request.param]


@pytest.fixture
def any_bucket(any_server: FaultyServer) -> str:
    """The name of a fresh bucket, or container, on a server without faults."""
    any_server.fault, any_server.most_keys = None, 0
    name = f"lake-{uuid.uuid4().hex[:12]}"
    any_server.make_bucket(name)
    return name


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one session of this process: two cores, no web page, few shuffle partitions."""
    from pyspark.sql import SparkSession

    # The workers have to be this very Python, not the first one on the path.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    home = tmp_path_factory.mktemp("spark")
    # Packages that a test installs in addition to the others, for every Python that Spark starts.
    os.environ["PACKAGES_OF_TESTS"] = str(home / "packages")
    # A Python process remembers for ever that a folder of its path was not there.
    (home / "packages").mkdir()
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(home / "packages"), before)))
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("sluice tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .config("spark.local.dir", str(home / "local"))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.stopTimeout", "60s")
    )
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    for query in session.streams.active:
        query.stop()
    session.stop()


@pytest.fixture(scope="module")
def answer_file(request: pytest.FixtureRequest) -> Iterator[AnswerFile]:
    """Spark's answers to the tests of a module."""
    file = answers.AnswerFile(request.path)
    yield file
    if answers.SOURCE == "record":
        file.write()


@pytest.fixture
def spark_answers(request: pytest.FixtureRequest, answer_file: AnswerFile) -> SparkAnswers:
    """What Spark reads: recorded, so that no JVM is needed, or by Spark itself."""
    session = partial(request.getfixturevalue, "spark")
    return answers.SparkAnswers(answer_file, request.node.name, session)
