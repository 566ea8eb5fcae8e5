"""Which evolution a query has: the options, with what depends on where the schema is from.

Not here: what an evolution does (`schemas.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import OptionError
from ...reader.files.options import FileFormatName
from ...reader.files.options.schema_options import EvolutionMode
from ..options.model import SluiceOptions

RESCUED = "_rescued_data"
"""Name of the rescued data column where none is given, as in Auto Loader."""


def as_inferred(options: SluiceOptions) -> SluiceOptions:
    """For a schema that was not given."""
    mode = options.schema_evolution_mode or EvolutionMode.ADD_NEW_COLUMNS
    update: dict[str, object] = {"schema_evolution_mode": mode}
    if mode is EvolutionMode.RESCUE and not options.rescued_data_column:
        update["rescued_data_column"] = RESCUED
    if not options.infer_column_types:
        update["primitives_as_string"] = True
    if options.header and options.file_format == FileFormatName.CSV:
        # It was merged over files, of which none has to have all of it.
        update["enforce_schema"] = False
    return options.model_copy(update=update)


def as_given(options: SluiceOptions, names: Sequence[str]) -> SluiceOptions:
    """For a schema by `.schema(...)`, which has the columns `names`.

    Raises:
        OptionError: the mode would change what the user has fixed, or has no column to rescue to.
    """
    mode = options.schema_evolution_mode or EvolutionMode.NONE
    if mode.adds:
        raise OptionError(
            "schemaEvolutionMode: a schema that you pass does not grow",
            "",
            f"{mode} and .schema(...)",
            "one of the two",
            "Leave .schema(...) out, with schemaHints for the columns whose types matter, or set "
            "schemaEvolutionMode to rescue, failOnNewColumns or none.",
        )
    update: dict[str, object] = {"schema_evolution_mode": mode}
    if mode is EvolutionMode.RESCUE:
        rescued = options.rescued_data_column or RESCUED
        if rescued not in names:
            raise OptionError(
                "schemaEvolutionMode: rescue needs a column to rescue to",
                "",
                f"no column {rescued} in the schema",
                f"{rescued} string",
                "Add it to .schema(...), or name another one with rescuedDataColumn.",
            )
        update["rescued_data_column"] = rescued
    return options.model_copy(update=update)


def resolved(options: SluiceOptions, names: Sequence[str], *, inferred: bool) -> SluiceOptions:
    """The options of a query over columns `names`."""
    return as_inferred(options) if inferred else as_given(options, names)
