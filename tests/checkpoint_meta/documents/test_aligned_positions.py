"""Messages between aligned sources: what is read of them, and what a look costs."""

from pyspark_sluice.checkpoint_meta.documents.aligned_positions import AlignedPositions
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore

IDLE = 300.0


class Counted(MemoryStateStore):
    """Counts requests, and can let something happen after a listing."""

    def __init__(self):
        super().__init__()
        self.requests = []
        self.after_listing = []

    def list(self, directory):
        self.requests.append("list")
        found = super().list(directory)
        if self.after_listing:
            self.after_listing.pop()()
        return found

    def read(self, name):
        self.requests.append("read")
        return super().read(name)


class Sources:
    def __init__(self, *names):
        self.store, self.now = Counted(), 0.0
        self.of = {name: self.again(name) for name in names}

    def again(self, name):
        return AlignedPositions(self.store, "shop", name, IDLE, lambda: self.now)

    def seen(self, name):
        return {peer.name: peer.position for peer in self.of[name].look()}


def test_a_look_costs_one_listing_and_one_read_of_each_new_message():
    sources = Sources("clicks", "orders")
    sources.of["orders"].publish(1)
    sources.store.requests.clear()
    for _ in range(3):
        sources.of["clicks"].look()
    assert sources.store.requests == ["list", "read", "list", "list"]
    assert len(sources.store.objects) == 1


def test_an_older_incarnation_that_still_publishes_is_passed():
    sources = Sources("clicks", "orders")
    older = sources.again("orders")
    sources.store.after_listing = [lambda: older.publish(1)]
    sources.of["orders"].publish(2)
    assert sources.seen("clicks") == {"orders": 2}


def test_a_message_that_is_replaced_after_the_listing_is_looked_for_again():
    sources = Sources("clicks", "re-orders")
    orders = sources.of["re-orders"]
    orders.publish(1)
    sources.store.after_listing = [lambda: [orders.publish(position) for position in (2, 3, 4)]]
    assert sources.seen("clicks") == {"re-orders": 4}


def test_a_source_is_idle_after_it_was_watched_for_so_long():
    sources = Sources("clicks", "orders")
    sources.of["orders"].publish(1)
    clicks, looks = sources.of["clicks"], 0
    while not any(map(clicks.is_idle, clicks.look())):
        sources.now += IDLE / 20
        looks += 1
    assert looks == 20
    sources.of["orders"].publish(2)
    assert not any(map(clicks.is_idle, clicks.look()))
