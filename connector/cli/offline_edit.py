"""Carries out changes to a state while no query runs.

Orders, forks, imports and compaction are plans: each reads a state and decides, and writes nothing
before `carry_out` asks it to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...checkpoint_meta.stores.contract import StateStore
from ..query.owner import owner_of, refuse_if_held
from ..views.state_view import consistent
from .answer import Answer, Exit, sections
from .arguments import EditArguments


@dataclass(frozen=True)
class Plan:
    """A change that was decided on, and not written."""

    report: Mapping[str, Any]
    """What `--json` prints."""

    write: Callable[[], Mapping[str, Any] | None] | None
    """Writes the change; returns what the report says in addition. None if nothing changes."""

    notes: Sequence[str] = ()
    """What people should know, in addition to the report."""

    done: str = ""
    """What they should know once it is written: a format of the report."""

    exit_code: Exit = Exit.FINE


def edit(
    arguments: EditArguments, decide: Callable[[StateStore], Plan], *, may_begin: bool = False
) -> Answer:
    """Change the state that the arguments name, as `carry_out` does.

    `may_begin`: it need not be there.
    """
    store = arguments.opened(may_begin)
    return carry_out(lambda: decide(store), yes=arguments.yes, changed=store, force=arguments.force)


def carry_out(
    decide: Callable[[], Plan],
    *,
    yes: bool,
    changed: StateStore | None = None,
    force: bool = False,
) -> Answer:
    """Decide on a change, and write it if the user says `--yes`.

    Args:
        decide: reads the states, without writing.
        yes: write it.
        changed: the state of a query that the change is about; None if it creates another one.
        force: write although the query may be running where this process cannot see it.
    """
    if yes and changed is not None:
        # Before the look, which may take long on a large state.
        refuse_if_held(changed, force=force)
    plan = consistent(decide)
    report, is_written = dict(plan.report), yes and plan.write is not None
    if is_written and plan.write is not None:
        if changed is not None:
            # Again: a query may have been started during the look.
            refuse_if_held(changed, force=force)
        report |= plan.write() or {}
    notes = list(plan.notes)
    if is_written and plan.done:
        notes.append(plan.done.format_map(report))
    if plan.write is not None and not yes:
        owner = f" ({owner_of(changed)})" if changed is not None else ""
        notes.append(f"nothing was written: add --yes to do it{owner}")
    shown = [*sections(report), *notes]
    return Answer({**report, "written": is_written}, shown, plan.exit_code)
