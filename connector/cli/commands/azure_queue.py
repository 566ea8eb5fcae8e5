"""What a Storage Queue of Azure needs, so that Event Grid tells it of new blobs in a container."""

from __future__ import annotations

import re
import shlex
from typing import Any, Final

from ....checkpoint_meta.storage.providers import AZURE, BY_SCHEME
from ....checkpoint_meta.storage.urls import scheme_of
from ....enumerator.files.discovery.queue.storage_queue import CREATED, RETENTION, UNFINISHED
from ....errors import OptionError
from ..output import option_lines

_NAME: Final = re.compile(r"[a-z0-9](-?[a-z0-9]){2,62}")

_PLACE: Final = re.compile(
    r"[a-z]+://(?P<container>[^/@]+)@(?P<account>[a-z0-9]+)\.(?:dfs|blob)\."
    r"(?P<suffix>[^/]+)(?:/(?P<prefix>[^*?\[{]*))?"
)


def is_azure(path: str) -> bool:
    """True if the path is in a container of Azure."""
    return BY_SCHEME.get(scheme_of(path)) is AZURE


def azure_setup(path: str, queue: str, dead_letters: str) -> dict[str, Any]:
    """The options of the query, what the subscription lets through, and the roles."""
    place = _PLACE.fullmatch(path)
    if place is None:
        raise OptionError(
            "the place is not a container of Azure with its account",
            "PATH",
            path,
            "abfss://container@account.dfs.core.windows.net/prefix without wildcards",
            "Name the directory that the query loads, up to the first wildcard.",
        )
    for name in (queue, dead_letters):
        if not _NAME.fullmatch(name) or len(name) > 63:
            raise OptionError(
                "Azure permits no queue of this name",
                "--queue",
                name,
                "3 to 63 lower-case letters, digits and single hyphens",
            )
    host = f"https://{place['account']}.queue.{place['suffix']}"
    prefix = (place["prefix"] or "").strip("/")
    return {
        "account": place["account"],
        "container": place["container"],
        "queues": {"events": queue, "deadLetters": dead_letters},
        "options": {
            "discoveryMode": "notifications",
            "queueUrl": f"{host}/{queue}",
            "deadLetterQueueUrl": f"{host}/{dead_letters}",
        },
        "subjectBeginsWith": (
            f"/blobServices/default/containers/{place['container']}/blobs/"
            + (f"{prefix}/" if prefix else "")
        ),
        "roles": {
            "container": "Storage Blob Data Reader",
            # To hide a message for longer is a write, which Message Processor may not.
            "events": "Storage Queue Data Contributor",
            "deadLetters": "Storage Queue Data Message Sender",
        },
    }


def azure_script(found: dict[str, Any]) -> str:
    """The same as commands of `az`; three variables at their head are the user's to set."""
    account, subject = shlex.quote(found["account"]), shlex.quote(found["subjectBeginsWith"])
    events, dead_letters = (shlex.quote(found["queues"][of]) for of in ("events", "deadLetters"))
    roles = "\n".join(
        f'az role assignment create --assignee "$PRINCIPAL" --role {shlex.quote(role)} \\\n'
        f'  --scope "$STORAGE"{_scope(found, of)}'
        for of, role in found["roles"].items()
    )
    return f"""\
# 1. Your subscription, the resource group of the account, and the identity of the query's driver.
SUBSCRIPTION=; GROUP=; PRINCIPAL=
STORAGE="/subscriptions/$SUBSCRIPTION/resourceGroups/$GROUP/providers\
/Microsoft.Storage/storageAccounts/"{account}

# 2. The queue for events, and the queue for messages that are not such events.
az storage queue create --account-name {account} --auth-mode login --name {events}
az storage queue create --account-name {account} --auth-mode login --name {dead_letters}

# 3. The container's events.
az eventgrid event-subscription create --name {events} --source-resource-id "$STORAGE" \\
  --endpoint-type storagequeue \\
  --endpoint "$STORAGE"/queueServices/default/queues/{events} \\
  --storage-queue-msg-ttl {RETENTION} \\
  --included-event-types {" ".join(CREATED)} \\
  --subject-begins-with {subject} \\
  --advanced-filter data.api StringNotIn {" ".join(UNFINISHED)}

# 4. The roles of the query's driver; executors need only that of the container.
{roles}

# 5. The options of the query.
{option_lines(found["options"])}"""


def _scope(found: dict[str, Any], of: str) -> str:
    if of == "container":
        return f"/blobServices/default/containers/{shlex.quote(found['container'])}"
    return f"/queueServices/default/queues/{shlex.quote(found['queues'][of])}"
