"""Versions of a schema: created once, in order, also by several at the same time."""

import json

from pyspark_sluice.checkpoint_meta.documents.query_records import SchemaHistory
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore


def adding(*names):
    def change(before):
        known = [] if before is None else before.struct["fields"]
        return {"fields": [*known, *(n for n in names if n not in known)]}, "a test"

    return change


def test_a_version_is_stored_only_where_it_makes_a_difference():
    history = SchemaHistory(MemoryStateStore())
    assert history.latest() is None
    assert history.grow(adding("a")).version == 0
    assert history.grow(adding("b")).version == 1
    assert history.grow(adding("a", "b")).version == 1
    assert history.latest() == history.grow(adding("b"))


class RacingStore(MemoryStateStore):
    """Somebody else stores a version just before each of the first publications."""

    def __init__(self, others):
        super().__init__()
        self.others = list(others)

    def publish(self, name, data):
        if self.others:
            SchemaHistory(self).grow(adding(self.others.pop()))
        super().publish(name, data)


def test_columns_that_several_tasks_find_at_once_are_all_kept():
    store = RacingStore("xyz")
    made = SchemaHistory(store).grow(adding("mine"))
    assert sorted(made.struct["fields"]) == ["mine", "x", "y", "z"]
    versions = [json.loads(data)["version"] for _, data in sorted(store.objects.items())]
    assert versions == [0, 1, 2, 3]


class StaleListings(MemoryStateStore):
    """Lists a directory as at the first look until it is refreshed, as a network file system."""

    def __init__(self, disk):
        super().__init__()
        self.objects = disk.objects
        self.listings = {}

    def list(self, directory):
        return self.listings.setdefault(directory, super().list(directory))

    def refresh(self, directory):
        self.listings.pop(directory, None)


def test_a_version_that_an_old_listing_hides_is_found_once_its_number_is_taken():
    disk = MemoryStateStore()
    store = StaleListings(disk)
    assert SchemaHistory(store).latest() is None
    SchemaHistory(disk).grow(adding("theirs"))
    made = SchemaHistory(store).grow(adding("mine"))
    assert made.struct["fields"] == ["theirs", "mine"]
