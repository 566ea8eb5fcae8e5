"""Carries out changes to a state while no query runs.

Orders, forks, imports and compaction are plans: each reads a state and decides, and writes nothing
before `carry_out` asks it to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import typer

from ...checkpoint_meta.stores.contract import StateStore
from ..query.owner import owner_of, refuse_if_held
from ..views.state_view import consistent
from .arguments import EditArguments
from .output import Ended, Exit, print_json


@dataclass(frozen=True)
class Plan:
    """A change that was decided on, and not written."""

    report: Mapping[str, Any]
    """What `--json` prints."""

    show: Callable[[Mapping[str, Any]], None]
    """Prints the report for people."""

    write: Callable[[], Mapping[str, Any]] | None
    """Writes the change; returns what the report says in addition. None if nothing changes."""

    exit_code: Exit = Exit.FINE


def edit(arguments: EditArguments, decide: Callable[[StateStore], Plan]) -> None:
    """Change the state that the arguments name, as `carry_out` does."""
    store, yes, as_json = arguments.opened(), arguments.yes, arguments.as_json
    carry_out(lambda: decide(store), yes=yes, as_json=as_json, changed=store, force=arguments.force)


def carry_out(
    decide: Callable[[], Plan],
    *,
    yes: bool,
    as_json: bool,
    changed: StateStore | None = None,
    force: bool = False,
) -> None:
    """Decide on a change, write it if the user says `--yes`, and report it.

    Args:
        decide: reads the states, without writing.
        yes: write it.
        as_json: print the report as JSON.
        changed: the state of a query that the change is about; None if it creates another one.
        force: write although the query may be running where this process cannot see it.
    """
    if yes and changed is not None:
        # Before the look, which may take long on a large state.
        refuse_if_held(changed, force=force)
    plan = consistent(decide)
    report: dict[str, Any] = {**plan.report, "written": False}
    if yes and plan.write is not None:
        if changed is not None:
            # Again: a query may have been started during the look.
            refuse_if_held(changed, force=force)
        report |= {**plan.write(), "written": True}
    if as_json:
        print_json(report)
    else:
        plan.show(report)
        if plan.write is not None and not yes:
            owner = f" ({owner_of(changed)})" if changed is not None else ""
            typer.echo(f"nothing was written: add --yes to do it{owner}")
    if plan.exit_code is not Exit.FINE:
        raise Ended(plan.exit_code)
