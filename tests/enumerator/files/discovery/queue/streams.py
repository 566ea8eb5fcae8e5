"""Discovery by the messages of a queue, driven by hand as the enumerator does it."""

from __future__ import annotations

import numpy as np

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.discovery import make_discovery
from pyspark_sluice.enumerator.batch_budget import UNLIMITED, BatchBudget
from pyspark_sluice.enumerator.files.cutting import SplitCutter
from pyspark_sluice.enumerator.files.enumerator import FileSplitEnumerator
from pyspark_sluice.enumerator.files.file_policy import FilePolicy
from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy
from pyspark_sluice.enumerator.files.ledger.sifting import OnOverwrite
from pyspark_sluice.enumerator.files.spreading import SplitSpreader
from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import as_json
from pyspark_sluice.tests.enumerator.files.bench import AnyByte
from pyspark_sluice.tests.enumerator.hand_cranked_context import HandCrankedContext
from pyspark_sluice.tests.patience import PATIENCE, wait_until


class Ledger:
    """What a ledger answers, kept as a list of paths."""

    def __init__(self, paths=()):
        self.paths = list(paths)

    def __len__(self):
        return len(self.paths)

    def are_known(self, paths):
        return np.array([path in self.paths for path in paths], np.bool_)


class Stream:
    """A discovery and its ledger, driven by hand as the enumerator does it."""

    def __init__(self, server, bucket, queue, path="in", known=(), **options):
        given = {
            "path": f"{server.scheme}://{bucket}/{path}",
            "storageOptions": as_json(server.options),
            "discoveryMode": "notifications",
            "queueUrl": queue,
            "failOnMissingPath": "false",
            **options,
        }
        self.root = f"{server.path_scheme}://{bucket}/"
        self.discovery = make_discovery(parse_options(given, streaming=False))
        self.ledger = Ledger(known)

    def found(self):
        """A pass; what it brings, known from now on."""
        files = [f for part in self.discovery.listing(self.ledger) for f in part.versions()]
        self.ledger.paths += [file.path for file in files]
        self.discovery.notify_entered()
        return [file.path.removeprefix(self.root) for file in files]

    def found_within(self, seconds=PATIENCE, count=1):
        found = []

        def enough():
            found.extend(self.found())
            return len(found) >= count

        wait_until(enough, lambda: f"only {found}", seconds)
        return found

    def checkpoint(self, identity):
        self.discovery.notify_cut(identity, self.ledger)
        self.discovery.notify_checkpoint_complete(identity)

    def receive_all(self, count):
        """Wait until so many messages have been received, without a pass."""
        wait_until(lambda: self.figures.get("received", 0) >= count, lambda: self.figures)

    def until_deleted(self, count):
        """Wait until so many messages have been deleted, without a pass."""
        wait_until(lambda: self.figures.get("deleted", 0) >= count, lambda: self.figures)

    @property
    def figures(self):
        return dict(self.discovery.report()["notifications"])

    def until(self, **figures):
        """Wait until the figures are these."""
        known = dict.fromkeys(figures, 0)

        def as_wanted():
            self.found()
            return figures.items() <= {**known, **self.figures}.items()

        wait_until(as_wanted, lambda: f"{self.figures}, not {figures}")


class Bench:
    """An enumerator over a discovery, turned by hand."""

    def __init__(self, discovery):
        self.context = HandCrankedContext(1)
        cutter, spreader = SplitCutter(AnyByte(), 100), SplitSpreader(1000, 1, 1)
        policy = FilePolicy(0.0, ledger=LedgerPolicy(on_overwrite=OnOverwrite.REPROCESS))
        self.enumerator = FileSplitEnumerator(
            self.context, discovery, cutter, spreader, policy, None
        )
        self.enumerator.start()

    def discovered(self):
        """What one call to discovery makes pending."""
        before = len(self.context.assigned)
        self.context.run_calls()
        self.enumerator.plan_batch(BatchBudget(UNLIMITED))
        return ["in/" + s.file.path.rpartition("/")[2] for _, s in self.context.assigned[before:]]

    @property
    def error(self):
        return self.enumerator.backlog().get("listingError", "")


def put(service, bucket, *keys):
    for key in keys:
        service.store.put(bucket, key, b"abc")
