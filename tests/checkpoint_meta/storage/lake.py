"""A bucket as `Storage`, whose objects tests call by their keys."""

from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage


class Lake:
    """Passes each call on, with the name of the bucket in front of the key."""

    def __init__(self, url, options):
        self.storage, name = open_storage(url, options)
        self._bucket, _, self.key = name.partition("/")

    def __getattr__(self, verb):
        method = getattr(self.storage, verb)
        return lambda key, *rest, **limits: method(f"{self._bucket}/{key}", *rest, **limits)

    def name_of(self, key):
        return f"{self._bucket}/{key}"

    def copy(self, key, target):
        self.storage.copy(self.name_of(key), self.name_of(target))

    def listed(self, prefix="in/", after=""):
        after = f"{self._bucket}/{after}" if after else ""
        pages = self.pages(prefix, after=after)
        return [name.partition("/")[2] for page in pages for name in page.names]
