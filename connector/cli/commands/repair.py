"""The commands that let a query start again: take-over, rebind, take-back-schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....checkpoint_meta.documents.query_records import SchemaHistory, StoredSchema, recorded_ends
from ....checkpoint_meta.stores.contract import StateStore
from ....errors import OptionError
from ...query import owner, start_check
from ...views.amounts import counted
from ..answer import Answer
from ..arguments import EditArguments, ViewArguments, Yes
from ..offline_edit import Plan, carry_out, edit


def take_back_plan(store: StateStore) -> Plan:
    """Plan a new version of the schema that equals the one before the newest change.

    Raises:
        OptionError: there is no earlier schema.
    """
    history = SchemaHistory(store)
    versions = history.all()
    # Versions are only added, so a schema that was taken back is there twice: its first occurrence
    # says what it was a change of.
    first = next((at for at, one in enumerate(versions) if one.struct == versions[-1].struct), 0)
    if first == 0:
        raise OptionError(
            "there is no schema to go back to",
            store.location,
            counted(len(versions), "stored version"),
            "an inferred schema that has changed",
            "List the versions with sluice files STATE --view schemas.",
        )
    newest, earlier = versions[-1], versions[first - 1]
    before, after = _columns(newest), _columns(earlier)
    report = {
        "state": store.location,
        "version": newest.version,
        "reason": newest.reason,
        "takes_back_to": earlier.version,
        "removes": sorted(set(before) - set(after)),
        "restores": sorted(
            f"{name} {kind}" for name, kind in after.items() if before.get(name) != kind
        ),
    }

    def change(current: StoredSchema | None) -> tuple[Mapping[str, Any], str]:
        if current != newest:
            raise OptionError(
                "the schema has changed since it was looked at",
                store.location,
                f"version {current.version if current else 'none'}",
                f"version {newest.version}",
                "Stop the query, then repeat the command.",
            )
        return earlier.struct, f"took back version {newest.version}"

    return Plan(report, lambda: {"new_version": history.grow(change).version})


def _columns(stored: StoredSchema) -> dict[str, str]:
    """Column names and their types as text, in Spark's JSON."""
    return {
        field["name"]: field["type"] if isinstance(field["type"], str) else str(field["type"])
        for field in stored.struct["fields"]
    }


def take_back_schema(arguments: EditArguments) -> Answer:
    """Take back the newest version of an inferred schema.

    The next start uses the version before it; the stored versions stay.
    """
    return edit(arguments, take_back_plan)


def take_over(arguments: ViewArguments, yes: Yes = False) -> Answer:
    """Supersede the query that owns a state.

    It ends with FencedError, and the next start need not wait for it.
    """
    store = arguments.opened()

    def decide() -> Plan:
        # A claim that belongs to no query.
        report = {"state": store.location, "owner": str(owner.owner_of(store))}
        return Plan(report, lambda: {"epoch": owner.take_over(store)})

    return carry_out(decide, yes=yes)


def rebind(arguments: EditArguments) -> Answer:
    """Forget the input and table; the next start sets them.

    It records those that it finds. A query that has not begun may write into a table that has its
    input. `sluice run` has flags for that.
    """
    return edit(arguments, _plan, may_begin=True)


def _plan(store: StateStore) -> Plan:
    ends = recorded_ends(store)
    report = {"state": store.location, "input": list(ends.input), "table": ends.table}
    terms = start_check.StartTerms(new_input=True, new_table=True)
    return Plan(report, None if ends.any_table else lambda: start_check.rebind(store, terms))
