"""The options of schema inference and evolution; names and meanings are Auto Loader's.

Not here: the inference (`schemas/inference.py`), and what an evolution does to
a query (the connector).
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from ....checkpoint_meta.storage.units import ByteSize
from .values import NameInAnyCase

_BYTES: dict[str, JsonValue] = {"unit": "bytes"}


class EvolutionMode(NameInAnyCase):
    """What a column does that the schema does not have."""

    ADD_NEW_COLUMNS = "addNewColumns"
    ADD_NEW_COLUMNS_WITH_TYPE_WIDENING = "addNewColumnsWithTypeWidening"
    RESCUE = "rescue"
    FAIL_ON_NEW_COLUMNS = "failOnNewColumns"
    NONE = "none"

    @property
    def adds(self) -> bool:
        """True if the schema grows."""
        return self in (self.ADD_NEW_COLUMNS, self.ADD_NEW_COLUMNS_WITH_TYPE_WIDENING)

    @property
    def widens(self) -> bool:
        """True if types grow as well."""
        return self is self.ADD_NEW_COLUMNS_WITH_TYPE_WIDENING

    @property
    def stops(self) -> bool:
        """True if a new column stops the query."""
        return self.adds or self is self.FAIL_ON_NEW_COLUMNS


class SchemaOptions(BaseModel):
    """How the schema comes about where `.schema(...)` does not give it, and how it goes on."""

    model_config = ConfigDict(
        frozen=True, alias_generator=to_camel, populate_by_name=True, defer_build=True
    )

    infer_column_types: bool = Field(
        False,
        description=(
            "Infer the types of values in JSON, CSV and XML, and of partition columns next to "
            "them; false makes them strings, nested values within their structure."
        ),
    )
    infer_sample_files: int = Field(
        1000, ge=1, description="Files that the schema is inferred from, at most."
    )
    infer_sample_bytes: ByteSize = Field(
        32 * 1024 * 1024,
        ge=1024,
        description=(
            "JSON, CSV and XML bytes that the schema is inferred from, at most, divided among the "
            "files; of other formats only the metadata is read."
        ),
        json_schema_extra=_BYTES,
    )
    schema_hints: str = Field(
        "",
        description=(
            "Types of some columns of an inferred schema, such as `id long, address.zip "
            "string, tags map<string, string>`; a hint overrides what is found."
        ),
    )
    schema_evolution_mode: EvolutionMode | None = Field(
        None,
        description=(
            "What happens on a new column: addNewColumns or addNewColumnsWithTypeWidening "
            "(stored, then the query stops and continues with it at its next start), rescue "
            "(kept as JSON in the rescued data column), failOnNewColumns (the query stops), "
            "none (left out). By default addNewColumns, or none with .schema(...)."
        ),
        json_schema_extra={"common": True},
    )

    @property
    def mode_of_evolution(self) -> EvolutionMode:
        """The mode, once the connector has filled it in; `none` before."""
        return self.schema_evolution_mode or EvolutionMode.NONE
