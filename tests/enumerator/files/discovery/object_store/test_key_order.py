"""The order of keys in a bucket: which a listing of a part of it takes, and where it may end."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.storage.bucket_storage import BucketStorage, before


class Ordered(BucketStorage):
    """A bucket that lists some keys in one of the orders that stores have."""

    _begin = "lake/"

    def __init__(self, keys, order=None, page=1):
        self._lists_in_order = order is None
        self._keys = sorted(keys, key=order)
        self._length = page

    def _objects(self, prefix, after=""):
        # Where keys come in another order, the client cannot begin behind one of them.
        keys = [
            key
            for key in self._keys
            if key.startswith(f"{prefix}/" if prefix else "")
            and (key > after or not self._lists_in_order)
        ]
        for start in range(0, len(keys), self._length):
            part = keys[start : start + self._length]
            columns = {"path": part, "size": [1] * len(part), "e_tag": ["1"] * len(part)}
            columns["last_modified"] = pa.array([0] * len(part), pa.timestamp("us", "UTC"))
            yield pa.record_batch(columns)


def _names(bucket: Any, prefix, **limits):
    pages = bucket.pages(f"lake/{prefix}", **limits)
    return [name.removeprefix("lake/") for page in pages for name in page.names]


@pytest.mark.parametrize("prefix", ["a-", "a0", "a/b c", "x", "z!", "日"])
def test_the_name_before_a_prefix_is_before_it_and_after_nothing_that_begins_so(prefix):
    assert before(prefix) < prefix
    assert not before(prefix).startswith(prefix)


@pytest.mark.parametrize("order", [lambda key: key.split("/"), lambda key: key.encode("utf-16-be")])
@pytest.mark.parametrize("start", ["in/a-x", "in/a-", "in/a", "in/a.b/c", "in/\uff41"])
def test_a_listing_in_azure_s_orders_is_not_ended_too_early(start, order):
    keys = ["in/a/z", "in/a-x/1", "in/a-x/2", "in/a.b/c1", "in/a.b/d", "in/b/1", "in/Z"]
    keys += ["in/\uff41/1", "in/\U0001f600/1"]
    found = _names(Ordered(keys, order), start)
    assert sorted(found) == sorted(key for key in keys if key.startswith(start))
