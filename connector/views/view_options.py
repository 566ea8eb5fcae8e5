"""The options of a view: which one, and where the state is.

Not here: the options of queries (`connector/options/model.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import ValidationError

from ...errors import OptionError
from ..options.model import SluiceOptions
from ..options.validation import near_name, problem_of

VIEW: Final = "view"

_KNOWN: Final = ("checkpointLocation", "stateLocation", "sourceName", "storageOptions")


def wanted_view(given: Mapping[str, str]) -> str | None:
    """The name of the view that the options ask for; None if they ask for rows."""
    return next((value for name, value in given.items() if name.lower() == VIEW), None)


def refuse_as_stream(given: Mapping[str, str]) -> None:
    """Raise if the options of a stream ask for a view.

    Raises:
        OptionError: names the way out.
    """
    if wanted_view(given) is not None:
        raise OptionError(
            "view: a view cannot be read as a stream",
            "",
            f"view={wanted_view(given)} with readStream",
            'spark.read.format("sluice").option("view", ...)',
        )


def view_options(given: Mapping[str, str]) -> SluiceOptions:
    """Where the state is, of the options of `read` that go with `view`.

    Raises:
        OptionError: lists every problem, each with its option.
    """
    spellings = {name.lower(): name for name in _KNOWN}
    known, problems = {}, []
    for name, value in given.items():
        if name.lower() in spellings:
            known[spellings[name.lower()]] = value
        elif name.lower() != VIEW:
            problems.append(f"{name}: unknown option of a view{near_name(name, spellings)}")
    if not (known.get("checkpointLocation") or known.get("stateLocation")):
        problems.append(
            "checkpointLocation: found nothing; expected that of the query, or its stateLocation"
        )
    try:
        options = SluiceOptions.model_validate(known)
    except ValidationError as error:
        problems += map(problem_of, error.errors())
    if problems:
        listed = "".join(f"\n  - {problem}" for problem in problems)
        raise OptionError(f"the view has invalid options:{listed}\n")
    return options
