"""Listings of a bucket, held against those of fsspec and against the names that are there."""

from __future__ import annotations

from itertools import product

import pytest

from pyspark_sluice.checkpoint_meta.storage.bucket import open_bucket
from pyspark_sluice.enumerator.files.discovery.object_store.listing_pages import (
    BucketPages,
    S3Pages,
)

pytestmark = pytest.mark.slow

KEYS = [
    *(f"in/day={d:02d}/part-{i}.json" for d in range(12) for i in range(3)),
    *("in/day=03-late/x", "in/day=03.5/x", "in/day=03", "in/dax", "in/daz", "in/ä", "inn/x", "a"),
]


@pytest.fixture
def pages(server, bucket):
    import s3fs

    client = server.client()
    for key in KEYS:
        client.put_object(Bucket=bucket, Key=key, Body=b"abc")
    opened = open_bucket(f"s3://{bucket}", server.options)
    assert opened is not None
    files = s3fs.S3FileSystem(**server.options, use_listings_cache=False)
    return BucketPages(opened[0]), S3Pages(files)


def _names(pages, *arguments, **options):
    found = list(pages.pages(*arguments, **options))
    names = [name for page in found for name in page.names]
    return names, sorted({folder for page in found for folder in page.folders})


def test_stretches_are_what_s3_itself_calls_so(pages, bucket):
    ours, theirs = pages
    prefixes = ("in/", "in/d", "in/day=0", "in/day=03", "in/day=03/", "", "zz")
    afters = ("", "in/day=03", "in/day=03/", "in/day=11/part-2.json", "in/e")
    for prefix, after, until in product(prefixes, afters, ("", "in/day=05/", "in/day=05/part-1")):
        limits = [f"{bucket}/{text}" if text else "" for text in (after, until)]
        found, _ = _names(ours, f"{bucket}/{prefix}", after=limits[0], until=limits[1])
        assert found == [
            f"{bucket}/{key}"
            for key in sorted(KEYS)
            if key.startswith(prefix) and key > after and (not until or key <= until)
        ], (prefix, after, until)
        if not until:
            assert found == _names(theirs, f"{bucket}/{prefix}", after=limits[0])[0]

    for text in ("", "in/day=03/part-1.json", "in/x"):
        after = f"{bucket}/{text}" if text else ""
        _, folders = _names(ours, f"{bucket}/in/", after=after, folders=True)
        assert folders == _names(theirs, f"{bucket}/in/", after=after, folders=True)[1]
    assert ours.exists(f"{bucket}/in/day=03")
    assert not ours.exists(f"{bucket}/out")
    assert list(ours.file(f"{bucket}/in/dax").names) == [f"{bucket}/in/dax"]
    assert not ours.file(f"{bucket}/in/da").names
