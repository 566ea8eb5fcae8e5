"""The errors of an attempt that does not follow what its batch has acknowledged already.

Not here: when that is so (`task.py`).
"""

from __future__ import annotations

from ..errors import ReplayError


def too_late(where: str) -> ReplayError:
    """The batch was completed without this attempt."""
    return ReplayError(
        "Spark completed the batch without this attempt",
        where,
        "a record of the driver that this reader's rows were not wanted",
        "no such record while an attempt is running",
        "Nothing is lost: the rows of this attempt are in no batch. A sink that reads only a part "
        "of its input (limit, first) leaves the rest unread.",
    )


def other_way(where: str, *, was_landed: bool) -> ReplayError:
    """The batch was first read with rows in data files and now without, or the reverse."""
    was = "rows were written into data files" if was_landed else "rows went to Spark"
    return ReplayError(
        "this batch was first read with landAt, and is not now"
        if was_landed
        else "this batch was first read without landAt",
        where,
        f"a commit by which {was}",
        "the same option for the whole batch",
        (
            "Start the query with the earlier options until the batch has finished, then "
            "change them."
        ),
    )


def cannot_repeat(
    where: str, changed: str, found: str, expected: str = "the same rows again"
) -> ReplayError:
    """This attempt returns something else than what was acknowledged."""
    remedy = (
        "Put the file back as it was when the batch was first read, then restart the "
        "query. If it is permanently gone, `sluice waive STATE` shows what of the batch "
        "cannot be read again. With --yes it gives that up, and the query continues."
    )
    if changed:
        remedy = (
            f"The {changed} is not what it was when the batch was first read: start the query with "
            "the earlier one until the batch has finished, then change it."
        )
    return ReplayError(
        "this attempt cannot repeat what an earlier attempt of the batch has acknowledged",
        where,
        found,
        expected,
        remedy,
    )
