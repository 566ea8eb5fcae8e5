"""Every option that Spark's readers know is known here, or its refusal says why it is gone."""

from __future__ import annotations

from pyspark_sluice.connector.options.aliases import AUTO_LOADER, SPARK, WITHOUT_EFFECT
from pyspark_sluice.connector.options.model import option_names

OBJECTS = (
    "catalyst.csv.CSVOptions",
    "catalyst.json.JSONOptions",
    "execution.datasources.parquet.ParquetOptions",
    "execution.datasources.orc.OrcOptions",
    "execution.datasources.text.TextOptions",
    "execution.datasources.FileIndexOptions",
)
# FileStreamOptions and FileSourceOptions do not list theirs.
OTHERS = """
    maxFilesPerTrigger maxBytesPerTrigger maxFileAge latestFirst fileNameOnly cleanSource
    sourceArchiveDir maxCachedFiles discardCachedInputRatio ignoreCorruptFiles ignoreMissingFiles
"""


def test_every_option_of_spark_s_readers_is_known(spark):
    java = spark._jvm.java.lang
    loader = java.Thread.currentThread().getContextClassLoader()
    names = {name.lower() for name in OTHERS.split()}
    for name in OBJECTS:
        options = java.Class.forName(f"org.apache.spark.sql.{name}$", True, loader)
        listed = options.getField("MODULE$").get(None).getAllOptions().mkString(",")
        names |= {one.lower() for one in listed.split(",")}
    assert len(names) > 60
    here = {*option_names(), *(known.name.lower() for known in (*SPARK, *AUTO_LOADER))}
    here |= {name.lower() for name in WITHOUT_EFFECT}
    assert sorted(names - here) == []
