"""What may be wrong with the options of landing.

Not here: the options themselves (`reader/landing/options.py`), and what only the schema shows.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic.alias_generators import to_camel

from ...checkpoint_meta.storage.input_paths import loaded_paths
from ...checkpoint_meta.storage.urls import is_below
from ...reader.landing.options import LandingOptions


def landing_problems(options: LandingOptions, loaded: str) -> Iterator[str]:
    """What does not fit together, a line each."""
    if not options.land_at:
        for name in sorted(options.model_fields_set & set(LandingOptions.model_fields)):
            yield f"{to_camel(name)}: found without landAt; expected where data files go, too"
        return
    if options.land_copy == "never":
        return  # Nothing is written there.
    if bool(options.land_transform) != bool(options.land_transform_schema):
        yield "landTransform: found one of landTransform, landTransformSchema; expected both"
    try:
        paths = loaded_paths(loaded)
    except ValueError:
        return  # Said elsewhere.
    for path in paths:
        if is_below(options.land_at, path.base) or is_below(path.base, options.land_at):
            yield (
                f"landAt: found {options.land_at!r}, and files are read from {path.given!r}; "
                "expected places apart, since data files would be read as input"
            )
