"""What may be wrong with the options of landing, and of bad records.

Not here: the options themselves (`reader/landing/landing_options.py`), and what only the schema
shows.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic.alias_generators import to_camel

from ...checkpoint_meta.storage.input_paths import loaded_paths
from ...checkpoint_meta.storage.urls import is_below
from ...reader.files.options import ParseMode, ReaderOptions
from ...reader.landing.landing_options import LandingOptions


def landing_problems(options: LandingOptions, loaded: str) -> Iterator[str]:
    """What does not fit together, a line each."""
    if not options.land_at:
        for name in sorted(options.model_fields_set & set(LandingOptions.model_fields)):
            yield f"{to_camel(name)}: found without landAt; expected landAt with it, or neither"
        return
    if options.land_copy == "never":
        return  # Nothing is written there.
    if bool(options.land_transform) != bool(options.land_transform_schema):
        yield "landTransform: found one of landTransform, landTransformSchema; expected both"
    yield from not_apart("landAt", options.land_at, loaded)


def bad_records_problems(options: ReaderOptions, loaded: str) -> Iterator[str]:
    """What does not fit `badRecordsPath`, a line each."""
    if not options.bad_records_path:
        return
    given = options.model_fields_set
    if "mode" in given and options.mode is not ParseMode.DROPMALFORMED:
        yield (
            f"badRecordsPath: found with mode={options.mode.value}; expected no mode, or "
            f"{ParseMode.DROPMALFORMED.value}, since malformed records are not in the rows"
        )
    if "column_name_of_corrupt_record" in given:
        yield (
            "badRecordsPath: found with columnNameOfCorruptRecord; expected one of the two, since "
            "malformed records are not in the rows"
        )
    yield from not_apart("badRecordsPath", options.bad_records_path, loaded)


def not_apart(option: str, place: str, loaded: str) -> Iterator[str]:
    """A line for each path from which what is written to a place would be read."""
    try:
        paths = loaded_paths(loaded)
    except ValueError:
        return  # Said elsewhere.
    for path in paths:
        if is_below(place, path.base) or is_below(path.base, place):
            yield (
                f"{option}: found {place!r}, and files are read from {path.given!r}; "
                "expected places apart, since data files would be read as input"
            )
