"""Options as an object: `options(fileFormat="json", max_files_per_trigger=500)`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from typing_extensions import Unpack

from ...errors import OptionError
from ...reader.files.formats.registry import formats_of
from ...reader.files.options import FileFormatName
from .model import SluiceOptions, parse_options
from .validation import listed

if TYPE_CHECKING:
    from .option_types import OptionTypes

__all__ = ["options"]


def options(**values: Unpack[OptionTypes]) -> dict[str, str]:
    """Check options, and return them in the form that Spark expects: `.options(**options(...))`.

    Names may be written as in the reference (`maxFilesPerTrigger`) or as in Python
    (`max_files_per_trigger`). Checks that need the path
    or Spark run when the query starts.

        >>> options(fileFormat="csv", header=True, max_files_per_trigger=500)
        {'fileFormat': 'csv', 'header': 'true', 'maxFilesPerTrigger': '500'}
        >>> reader = spark.readStream.format("sluice").options(**options(fileFormat="text"))

    Raises:
        OptionError: an option is wrong. The message lists every problem.
    """
    return checked(values)


def checked(values: Mapping[str, object]) -> dict[str, str]:
    """The same for names that are no parameters, such as `cloudFiles.format`."""
    texts: dict[str, str] = {}
    problems: list[str] = []
    for written, value in values.items():
        # The model's own names are Python's spellings.
        field = SluiceOptions.model_fields.get(written)
        name = written if field is None else str(field.alias)
        text = _text(name, value)
        # Spark's options ignore case: of two spellings the later one would win without a word.
        if name.lower() in map(str.lower, texts):
            problems.append(f"{written}: {name} is set as well and means the same; pass only one")
        elif text is None:
            kind = type(value).__name__
            problems.append(
                f"{written}: found {kind}; expected text, a number, a boolean, a list or a "
                "dictionary; leave the option out for its default"
            )
        else:
            texts[name] = text
    if problems:
        raise OptionError(listed(problems))
    # Only `readStream` or `read`, and `.load`, say the rest.
    parse_options(texts, streaming=False, path_follows=True)
    return texts


def direct_write(
    path: str | os.PathLike[str],
    *,
    checkpoint: str | os.PathLike[str],
    format: str,  # noqa: A002 - the word of Spark's readers and writers
    schema: str | None,
    options: Mapping[str, object],
) -> dict[str, object]:
    """Return the options of a query whose readers write data files."""
    named = {"path": path, "fileFormat": format, "checkpointLocation": checkpoint}
    return {**named, **written_columns(schema, format), **options}


def written_columns(schema: str | None, file_format: str) -> dict[str, str]:
    """Return the options that say, or infer, the columns of data files."""
    return {"writeSchema": schema} if schema else inferred_types(file_format)


def inferred_types(file_format: str) -> dict[str, str]:
    """Return the options that infer the types of columns, if the format has any to infer."""
    formats = {name.value.lower() for name in formats_of("infer_column_types")}
    inferring = {*formats, *FileFormatName.other_names()}
    return {"inferColumnTypes": "true"} if file_format.lower() in inferring else {}


def _text(name: str, value: object) -> str | None:
    """Return what Spark would be given; None for a value that no option has."""
    # Before the numbers, which bool is one of.
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    # writePartitionBy and writeSortBy are lists with commas; all other lists are JSON.
    if isinstance(value, list | tuple) and name.startswith("write"):
        return ",".join(map(str, value))
    if isinstance(value, list | tuple | Mapping):
        try:
            return json.dumps(value)
        except TypeError:
            return None
    return None
