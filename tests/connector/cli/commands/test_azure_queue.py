"""What `sluice queue-setup` prints for a container of Azure: run by a shell, and by a query."""

from __future__ import annotations

import subprocess

import pytest

from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.tests.connector.cli.command_line import run
from pyspark_sluice.tests.enumerator.files.discovery.queue.services import blob_event
from pyspark_sluice.tests.patience import PATIENCE

PATH = "abfss://lake@account.dfs.core.windows.net/in/deep"


def commands(capsys, *arguments):
    """The words of each call of az, as a shell hands them over."""
    assert main(["queue-setup", PATH, *arguments]) == 0
    script = "az() { printf '%s\\0' \"$@\"; printf '\\1'; }\n" + capsys.readouterr().out
    done = subprocess.run(
        ["bash", "-eu"], input=script, text=True, capture_output=True, check=True, timeout=PATIENCE
    )
    return [call.split("\0") for call in done.stdout.split("\1") if call]


def test_the_options_that_it_prints_are_those_of_a_query(capsys):
    commands = run(capsys, "queue-setup", PATH)
    given = {"path": PATH, **commands["options"]}
    parsed = parse_options(given, streaming=False)
    assert parsed.queue_url == "https://account.queue.core.windows.net/sluice"
    assert parsed.dead_letter_queue_url == f"{parsed.queue_url}-dead-letters"


def test_events_of_the_path_pass_the_filter_and_no_others(capsys):
    (call,) = [call for call in commands(capsys) if "event-subscription" in call]
    begins = call[call.index("--subject-begins-with") + 1]
    assert blob_event("lake", "in/deep/a")["subject"].startswith(begins)
    for container, key in (("lake", "in/deeper/a"), ("other", "in/deep/a")):
        assert not blob_event(container, key)["subject"].startswith(begins)


def test_each_role_is_on_what_the_query_uses_it_for(capsys):
    calls = [call for call in commands(capsys, "--queue", "told") if "assignment" in call]
    roles = {call[call.index("--scope") + 1]: call[call.index("--role") + 1] for call in calls}
    ends = {scope.partition("storageAccounts/account/")[2]: roles[scope] for scope in roles}
    assert ends == {
        "blobServices/default/containers/lake": "Storage Blob Data Reader",
        "queueServices/default/queues/told": "Storage Queue Data Contributor",
        "queueServices/default/queues/told-dead-letters": "Storage Queue Data Message Sender",
    }


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["abfss://lake/in"], "account.dfs.core.windows.net"),
        (["abfss://lake@a.dfs.core.windows.net/*.json"], "without wildcards"),
        ([PATH, "--queue", "Told"], "lower-case"),
        ([PATH, "--queue", "a--b"], "lower-case"),
        ([PATH, "--queue", "x" * 60], "lower-case"),
    ],
)
def test_what_azure_does_not_know_is_refused(arguments, told, capsys):
    assert main(["queue-setup", *arguments]) == 2
    assert told in capsys.readouterr().err
