"""The options of schema inference and evolution; names and meanings are Auto Loader's."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from ....checkpoint_meta.storage.written_values import ByteSize
from .values import NameInAnyCase

_BYTES: dict[str, JsonValue] = {"unit": "bytes"}


class EvolutionMode(NameInAnyCase):
    """The treatment of a column that the schema does not have."""

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
        """True if a new column ends the reading with the schema that does not have it."""
        return self.adds or self is self.FAIL_ON_NEW_COLUMNS


class SchemaOptions(BaseModel):
    """The options of a schema that `.schema(...)` does not give, and of its evolution."""

    model_config = ConfigDict(
        # A model is built when it is first used, so a process that only imports it starts faster.
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        defer_build=True,
    )

    # This and the number of sample files are the defaults of Auto Loader.
    infer_column_types: bool = Field(
        False,
        description="Infer the types of values in JSON, CSV and XML, and of their partition "
        "columns; false infers strings, and keeps the structure of nested values.",
    )
    infer_sample_files: int = Field(
        1000, ge=1, description="Maximum number of files that the schema is inferred from."
    )
    infer_sample_bytes: ByteSize = Field(
        32 * 1024 * 1024,
        ge=1024,
        description="Maximum number of JSON, CSV and XML bytes that the schema is inferred from, "
        "divided among the files; of other formats only the metadata is read.",
        json_schema_extra=_BYTES,
    )
    schema_hints: str = Field(
        "",
        description="Types of some columns of an inferred schema, such as `id long, address.zip "
        "string, tags map<string, string>`; a hint overrides what is found.",
    )
    schema_evolution_mode: EvolutionMode | None = Field(
        None,
        description="What happens when a new column appears: addNewColumns or "
        "addNewColumnsWithTypeWidening (the extended schema is stored; a query with writeTo "
        "continues with it, others stop and use it at their next start), rescue (the column is "
        "kept as JSON in the rescued data column), failOnNewColumns (the query fails), none (the "
        "column is ignored). By default addNewColumns, or none with .schema(...).",
        json_schema_extra={"common": True},
    )

    accept_unrelated_files: bool = Field(
        False,
        description="Read a file that has no column of the inferred schema, or of which a hundred "
        "records and more are dropped and none fits; by default it is an error, because it is more "
        "often an error page, or has another separator.",
    )
    max_bad_record_share: float = Field(
        1.0,
        ge=0,
        le=1,
        description="Share of the records of a file, or of the part of it that is read at once, "
        "that may be dropped as malformed, if they are a hundred or more. Above it nothing of the "
        "part is read, and the file is an error: see onSplitError. 0.05 is five percent.",
    )
    max_new_columns: int = Field(
        1000,
        ge=1,
        description="Maximum number of columns and fields that one new version of the schema adds "
        "or widens; more of them stop the query, and nothing is stored.",
    )

    @property
    def mode_of_evolution(self) -> EvolutionMode:
        """The mode, once the connector has filled it in; `none` before."""
        return self.schema_evolution_mode or EvolutionMode.NONE
