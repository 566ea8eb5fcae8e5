"""Calls of `sluice run` that end with an error, and what its remedy says."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq

Files = Mapping[str, str | bytes | None]
"""Name -> content; None for a file that is removed."""


@dataclass(frozen=True)
class Remedy:
    """An error and the way out of it."""

    place: str
    """Part of the name of the place, as `places.places` has it."""

    files: Files = field(default_factory=lambda: {"1.json": ONE})
    follow: str | Files | Callable[[Any, str], object] = ""
    """Options that the message names; or files that are repaired, added or removed."""

    rows: Sequence[tuple[Any, ...]] = ((1,),)
    fmt: str = "json"
    schema: str = ""
    corrected: str = ""
    """The schema after the error, if it was wrong."""

    options: Sequence[str] = ()
    wrong: Sequence[str] = ()
    """Options that the remedy takes away or replaces."""

    before: Files = field(default_factory=dict)
    """Files of an earlier run that ends well."""

    says: str = ""
    """A part of the remedy."""


def parquet(**columns: Any) -> bytes:
    """A Parquet file of these columns."""
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def orc(**columns: Any) -> bytes:
    """An ORC file of these columns."""
    sink = io.BytesIO()
    pyarrow.orc.write_table(pa.table(columns), sink)
    return sink.getvalue()


def zipped(**members: str | bytes) -> bytes:
    """A zip archive of these members."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, text in members.items():
            archive.writestr(f"{name}.json", text, zipfile.ZIP_DEFLATED)
    return sink.getvalue()


ONE = '{"id": 1}\n'
HEADER = ["header=true"]


def WAIVE(call: Any, message: str) -> None:  # noqa: N802 - a constant of the table
    """Remove the file, and give up its rows with the command that the message names."""
    (call.query.source / "2.json").unlink()
    call.command(message, "waive")


DATA = [
    Remedy(
        "lines.py: text cannot be decoded",
        {"1.json": b'{"id": 1}'},
        "encoding=UTF-8",
        schema="id long",
        wrong=["encoding=UTF-16LE"],
    ),
    Remedy(
        "lineSep: it contains characters",
        {"1.txt": b"a\xe9b"},
        "encoding=ISO-8859-1",
        [("a",), ("b",)],
        fmt="text",
        options=["lineSep=é"],
        wrong=["encoding=US-ASCII"],
        says="a separator that can be written in that encoding",
    ),
    Remedy(
        "compressed file cannot be decompressed",
        {"2.json.gz": b"\x1f\x8b\x08\0 no gzip"},
        {"2.json.gz": gzip.compress(b'{"id": 2}\n')},
        [(1,), (2,)],
        before={"1.json": ONE},
        says="Replace the file",
    ),
    *(
        Remedy(
            "file_kinds.py: the file is not {}",
            {"2.json": parquet(id=[2])},
            follow,
            [(1,)],
            before={"1.json": ONE},
        )
        for follow in ("onSplitError=return", WAIVE)
    ),
    Remedy(
        "file_kinds.py: the file is not {}",
        {"2.json": gzip.compress(b'{"id": 2}\n')},
        "compression=gzip",
        [(2,)],
        schema="id long",
    ),
    Remedy(
        "file_kinds.py: the file is not {}",
        {"2.json": "<!DOCTYPE html><html>500</html>"},
        {"2.json": '{"id": 2}\n'},
        [(1,), (2,)],
        before={"1.json": ONE},
        says="Remove the error page",
    ),
    Remedy(
        "the file has no record that fits the schema",
        {"2.json": '{"id": "x"}\n' * 100},
        "acceptUnrelatedFiles=true",
        options=["mode=DROPMALFORMED"],
        before={"1.json": ONE},
    ),
    Remedy(
        "more records of the file are malformed",
        {"2.json": '{"id": "x"}\n' * 100 + '{"id": 2}\n' * 50},
        "maxBadRecordShare=0.7",
        [(1,), *[(2,)] * 50],
        before={"1.json": ONE},
        options=["mode=DROPMALFORMED"],
        wrong=["maxBadRecordShare=0.5"],
    ),
    Remedy(
        "memory_bounds.py: a {} is longer than {}",
        {"1.json": '{"id": 1, "t": "' + "x" * 1100000 + '"}\n'},
        "maxRecordBytes=2000000",
        [(1, "x" * 1100000)],
        wrong=["maxRecordBytes=1048576"],
        schema="id long, t string",
    ),
    Remedy(
        "member_content.py: the archive cannot be read",
        {"2.zip": b"PK\x03\x04 no archive"},
        {"2.zip": zipped(a='{"id": 2}\n')},
        [(1,), (2,)],
        before={"1.json": ONE},
        says="eplace",
    ),
    Remedy(
        "member_content.py: the archive cannot be read",
        {"2.zip": b"PK\x03\x04 no archive", "3.json": '{"id": 3}\n'},
        "ignoreCorruptFiles=true",
        [(1,), (3,)],
        before={"1.json": ONE},
    ),
    Remedy(
        "blocks.py: not a readable {}",
        {"2.parquet": b"PAR1 no PAR1"},
        {"2.parquet": parquet(id=[2])},
        [(1,), (2,)],
        fmt="parquet",
        before={"1.parquet": parquet(id=[1])},
        says="Replace the file",
    ),
    Remedy(
        "blocks.py: column {} has incompatible types",
        {"1.parquet": parquet(id=[1], v=[1]), "2.parquet": parquet(id=[2], v=["x"])},
        rows=[(1,), (2,)],
        fmt="parquet",
        corrected="id long",
        says="Leave the column out of --schema",
    ),
    Remedy(
        "blocks.py: column {} has a type that Spark does not",
        {"1.parquet": parquet(id=[1], t=pa.array([1], pa.decimal256(50, 0)))},
        fmt="parquet",
        corrected="id long",
        says="leave it out of --schema",
    ),
    Remedy(
        "convert.py: column {} does not fit",
        {"2.parquet": parquet(id=["x"], v=[2])},
        {"2.parquet": parquet(id=[2], v=[2])},
        [(1, 1), (2, 2)],
        fmt="parquet",
        before={"1.parquet": parquet(id=[1], v=[1])},
        says="eplace",
    ),
    Remedy(
        "the schema cannot be read from CSV",
        {"1.csv": "1\n"},
        fmt="csv",
        schema="id map<string,long>",
        corrected="id long",
    ),
    Remedy(
        "the schema cannot be read from JSON",
        {"1.json": '{"id": {"1": 2}}\n'},
        rows=[([("1", 2)],)],
        schema="id map<int,long>",
        corrected="id map<string,long>",
    ),
    Remedy(
        "the schema cannot be read from XML",
        {"1.xml": "<a><r><id>1</id></r></a>"},
        fmt="xml",
        schema="id map<int,long>",
        corrected="id long",
        options=["rowTag=r"],
    ),
    Remedy(
        "the header does not fit the schema",
        {"1.csv": "b,a\n2,1\n"},
        "enforceSchema=false",
        [(1, 2)],
        fmt="csv",
        options=HEADER,
        schema="a long, b long",
    ),
    Remedy(
        "the header names a column twice",
        {"1.csv": "a,a\n1,2\n"},
        {"1.csv": "a,b\n1,2\n"},
        [(1, 2)],
        fmt="csv",
        options=[*HEADER, "enforceSchema=false"],
        schema="a long, b long",
        says="Rename one of the two",
    ),
    Remedy(
        "rowValidationXSDPath: the XML schema",
        {"1.xml": "<a><r><id>1</id></r></a>", "_x.xsd": "no schema"},
        {
            "_x.xsd": '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">'
            '<xs:element name="r"><xs:complexType><xs:sequence>'
            '<xs:element name="id" type="xs:int"/></xs:sequence></xs:complexType></xs:element>'
            "</xs:schema>"
        },
        fmt="xml",
        schema="id long",
        options=["rowTag=r", "rowValidationXSDPath={in}/_x.xsd"],
        says="a local path to an XML schema",
    ),
    Remedy(
        "a file declares an encoding that is not known",
        {
            "1.xml": '<?xml version="1.0" encoding="klingon"?><a><r><id>é</id></r></a>'.encode(
                "latin1"
            )
        },
        "encoding=ISO-8859-1",
        [("é",)],
        fmt="xml",
        schema="id string",
        options=["rowTag=r"],
    ),
    Remedy(
        "the text format has one string column",
        {"1.txt": "a\n"},
        rows=[("a",)],
        fmt="text",
        schema="id long",
        corrected="value string",
        says="value STRING",
    ),
    Remedy(
        "fileFormat: cannot load it",
        follow="fileFormat=json",
        fmt="nowhere:Format",
        schema="id long",
        says="one of json",
    ),
    Remedy(
        "the file is too long to be one value",
        {"1.bin": b"x"},
        rows=[(2**31,)],
        fmt="binaryFile",
        schema="length long, content binary",
        corrected="length long",
        says="Leave the column content out of the schema",
    ),
    Remedy(
        "partition column {} does not fit",
        {"day=x/1.json": ONE},
        rows=[(1, "x")],
        schema="id long, day date",
        corrected="id long, day string",
        says="Correct the type",
    ),
    Remedy(
        "has fields that are not known",
        rows=[(1, {"file_size": 10})],
        schema="id long, _metadata struct<size: long>",
        corrected="id long, _metadata struct<file_size: long>",
        says="file_size",
    ),
    Remedy(
        "row_filter.py: {}",
        {"1.json": '{"id": 1}\n{"id": 2}\n'},
        "filter='id >= 2'",
        [(2,)],
        wrong=["filter=id => 2"],
    ),
    Remedy(
        "the files have no record to infer it from",
        {"1.json": "\n"},
        {"2.json": ONE},
        says="json data",
    ),
    Remedy(
        "times/temporal.py: {} is not understood",
        {"1.csv": "2024/01/02\n"},
        "dateFormat=yyyy/MM/dd",
        [(dt.date(2024, 1, 2),)],
        fmt="csv",
        schema="d date",
        wrong=["dateFormat=QQQ'"],
    ),
    Remedy("timeZone is not known", follow="timeZone=Europe/Berlin", wrong=["timeZone=Moon"]),
    Remedy(
        "hints.py: {}: it does not parse",
        follow="schemaHints='id string'",
        rows=[("1",)],
        wrong=["schemaHints=id lng"],
    ),
    Remedy(
        "names a field of a column that is not a struct",
        follow="schemaHints='id string'",
        rows=[("1",)],
        wrong=["schemaHints=id.x long"],
        says="struct",
    ),
    Remedy(
        "hints.py: {}: a name with dots",
        {"1.json": '{"a.b": 1}\n'},
        schema="a.b long",
        corrected="`a.b` long",
        says="`a.b`",
    ),
    Remedy(
        "two columns have the same name to Spark",
        {"2.json": '{"ID": 2}\n'},
        {"2.json": '{"id": 2}\n'},
        [(1,), (2,)],
        before={"1.json": ONE},
        says="epair",
    ),
    Remedy(
        "two columns have the same name to Spark",
        {"2.json": '{"ID": 2}\n'},
        "schemaEvolutionMode=rescue",
        [(1, None), (None, '{"ID":2}')],
        before={"1.json": ONE},
    ),
    Remedy(
        "the statistics of a file contain no event time",
        {"1.parquet": parquet(id=[1], at=["x"])},
        "onMissingEventTime=mtime",
        [(1, "x")],
        fmt="parquet",
        options=["fileOrder=eventTime", "eventTimeColumn=at"],
    ),
    Remedy(
        "event_times.py: the path of a file names no event time",
        follow="onMissingEventTime=mtime",
        schema="id long",
        options=["fileOrder=eventTime", "eventTimePattern={yyyy}-{MM}-{dd}"],
    ),
    Remedy(
        "a file arrived too late",
        {"2026-11-20/1.json": '{"id": 2}\n'},
        "onLateFile=read",
        [(1,), (2,)],
        before={"2026-11-27/1.json": ONE},
        options=[
            "fileOrder=eventTime",
            "eventTimePattern={yyyy}-{MM}-{dd}",
            "recursiveFileLookup=true",
        ],
        wrong=["onLateFile=fail"],
    ),
    Remedy(
        "an append-only file was truncated",
        {"1.txt": "a\n"},
        "onOverwrite=reprocess",
        [("a",), ("a",), ("b",)],
        fmt="text",
        before={"1.txt": "a\nb\n"},
        wrong=["onOverwrite=appendTail"],
    ),
    Remedy(
        "a schema that you pass cannot evolve",
        follow="schemaEvolutionMode=rescue",
        rows=[(1, None)],
        schema="id long, _rescued_data string",
        wrong=["schemaEvolutionMode=addNewColumns"],
    ),
    Remedy(
        "rescue needs a rescued data column",
        rows=[(1, None)],
        schema="id long",
        corrected="id long, _rescued_data string",
        options=["schemaEvolutionMode=rescue"],
        says="Add it to",
    ),
    Remedy(
        "more new columns than one version",
        {"2.json": '{"id": 2, "a": 1, "b": 2}\n'},
        "maxNewColumns=2",
        [(1, None, None), (2, 1, 2)],
        before={"1.json": ONE},
        wrong=["maxNewColumns=1"],
    ),
    Remedy(
        "cannot resume reading a file that is not line-based",
        {"1.json.gz": gzip.compress(b'{"id": 1}\n')},
        "onOverwrite=ignore",
        schema="id long",
        wrong=["onOverwrite=appendTail"],
    ),
    Remedy(
        "symbolic links form a cycle",
        {"a/1.json": ONE},
        lambda call, _: (call.query.source / "a" / "loop").unlink(),
        schema="id long",
        options=["recursiveFileLookup=true"],
        says="Remove the link",
    ),
    Remedy(
        "a directory that Spark's file sink writes to",
        {"1.json": ONE, "_spark_metadata/0": "v1\n"},
        {"_spark_metadata/0": None, "_spark_metadata/": None},
        schema="id long",
        says="_spark_metadata",
    ),
    Remedy(
        "tree_discovery.py: the path does not exist",
        {},
        "failOnMissingPath=false",
        (),
        schema="id long",
    ),
    Remedy(
        "tree_discovery.py: the path does not exist",
        {},
        {"1.json": ONE},
        schema="id long",
        says="Create it",
    ),
    Remedy(
        "writeTransform: cannot load it",
        follow="writeTransform=pyspark_sluice.tests.connector.host.transforms:doubled",
        rows=[(2,)],
        schema="id long",
        options=["writeTransformSchema=id long"],
        wrong=["writeTransform=nowhere:f"],
        says="package.module:function",
    ),
    Remedy(
        "writeTransform: the function does not return",
        follow="writeTransformSchema='id long'",
        rows=[(2,)],
        schema="id long",
        options=["writeTransform=pyspark_sluice.tests.connector.host.transforms:doubled"],
        wrong=["writeTransformSchema=id string"],
    ),
    Remedy(
        "file_source.py: source: cannot load it",
        follow="source=files",
        schema="id long",
        wrong=["source=nowhere:Source"],
    ),
    Remedy(
        "rows cannot be partitioned by these columns",
        {"1.json": '{"id": 1, "day": "a"}\n'},
        "writePartitionBy=day",
        [(1, "a")],
        wrong=["writePartitionBy=dey"],
        says="columns of the rows",
    ),
    Remedy(
        "writeFileColumn: the rows have a column of this name",
        {"1.json": '{"id": 1, "file": "a"}\n'},
        "writeFileColumn=key",
        (),
        wrong=["writeFileColumn=FILE"],
    ),
    Remedy(
        "writeFileColumn: writeTransform has to keep",
        follow="'writeTransformSchema=twice long, file string'",
        rows=(),
        schema="id long",
        options=[
            "writeFileColumn=file",
            "writeTransform=pyspark_sluice.tests.connector.host.transforms:with_file",
        ],
        wrong=["writeTransformSchema=twice long"],
    ),
    Remedy(
        "writeSortBy: there are no such columns",
        {"1.json": '{"id": 2}\n{"id": 1}\n'},
        "writeSortBy=id",
        [(1,), (2,)],
        wrong=["writeSortBy=x"],
        says="columns of the files: id",
    ),
    Remedy(
        "the data files would be outside",
        {"1.parquet": parquet(id=[1])},
        "writeCopy=always",
        fmt="parquet",
        schema="id long",
        wrong=["writeCopy=never"],
    ),
    Remedy(
        "startingState: the checkpoint does not exist",
        schema="id long",
        wrong=["startingState={ck}/sluice/source@7"],
        says="one of the checkpoints retained there",
    ),
    Remedy(
        "options/model.py: {}",
        follow="maxFilesPerTrigger=1",
        schema="id long",
        wrong=["maxFilesPerTriger=1"],
    ),
    Remedy(
        "the query's own files",
        follow=lambda call, _: (call.query.source / "own").unlink(),
        schema="id long",
        options=["recursiveFileLookup=true"],
        says="Remove the link",
    ),
    Remedy(
        "the archive holds more than is read",
        {"2.zip": zipped(a=" " * 150_000_000)},
        "ignoreCorruptFiles=true",
        before={"1.json": ONE},
    ),
    Remedy(
        "an archive has no statistics of its members",
        {"1.zip": zipped(a=parquet(id=[1]))},
        "onMissingEventTime=mtime",
        [(1, None)],
        fmt="parquet",
        schema="id long, at timestamp",
        options=["fileOrder=eventTime", "eventTimeColumn=at"],
    ),
    Remedy(
        "columns that are named by position",
        {"1.orc": orc(_col0=[1], _col1=[2])},
        rows=[(1, 2)],
        fmt="orc",
        schema="a long",
        corrected="a long, b long",
        says="Give all columns",
    ),
    Remedy(
        "writeTo: variant columns cannot",
        {"1.json": '{"v": 1}\n'},
        rows=[("1",)],
        schema="v variant",
        corrected="v string",
        says="strings, or structs",
    ),
    Remedy(
        "writeCopy=never: data files do not have",
        {"1.parquet": parquet(id=[1])},
        "writeCopy=always",
        [(1, {"file_name": "1.parquet"})],
        fmt="parquet",
        schema="id long, _metadata struct<file_name: string>",
        wrong=["writeCopy=never"],
    ),
    Remedy(
        "filter: rows that are filtered while",
        schema="id long, _metadata struct<row_index: long>",
        corrected="id long",
        options=["filter=id > 0"],
        says="one of the two",
    ),
    Remedy(
        "an append-only file was replaced",
        {"new": "b\nc\n"},
        "onOverwrite=reprocess",
        [("a",), ("b",), ("c",)],
        fmt="text",
        before={"1.txt": "a\n"},
        options=["pathGlobFilter=*.txt", "onOverwrite=appendTail"],
    ),
    Remedy(
        "tree_discovery.py: the path cannot be listed",
        {},
        lambda call, _: (call.query.source.unlink(), call.query.source.mkdir(), call.put("1", ONE)),
        schema="id long",
        says="Repair access",
    ),
    Remedy(
        "the state store failed to",
        follow=lambda call, _: call.query.checkpoint.unlink(),
        schema="id long",
        says="Repair access to the state directory",
    ),
    Remedy(
        "delta_table.py: the table cannot be opened",
        follow=lambda call, _: call.query.table.unlink(),
        schema="id long",
        says="Repair the table",
    ),
    Remedy(
        "the data has columns that the schema does not have",
        {"2.json": '{"id": 2, "x": 5}\n'},
        WAIVE,
        options=["schemaEvolutionMode=failOnNewColumns"],
        before={"1.json": ONE},
    ),
    Remedy(
        "the table does not take the new columns",
        {"2.json": '{"s": {"A": 2}}\n'},
        WAIVE,
        [({"a": 1},)],
        before={"1.json": '{"s": {"a": 1}}\n'},
    ),
    Remedy(
        "the table does not take the new columns",
        {"2.json": '{"s": {"A": 2}}\n'},
        "schemaEvolutionMode=rescue",
        [({"a": 1}, None), ({"a": None}, '{"s":{"A":2}}')],
        before={"1.json": '{"s": {"a": 1}}\n'},
    ),
    Remedy(
        "records/record_format.py: malformed record",
        {"2.json": '{"id": oops}\n'},
        WAIVE,
        before={"1.json": ONE},
    ),
    Remedy(
        "file_version.py: the file changed since discovery",
        {"2.json": '{"id": 2}\n' * 100_000 + "oops\n"},
        WAIVE,
        # Of its parts those that were read before are there.
        (),
        options=["maxSplitBytes=256k"],
        before={"1.json": ONE},
    ),
]
