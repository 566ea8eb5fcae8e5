"""Coordinators with one planted bug each. The simulator has to catch every one of them."""

from __future__ import annotations

from pyspark_sluice.tests.protocol.broken_gateways import GatewayNeverOpens
from pyspark_sluice.tests.protocol.broken_in_flight import (
    AbortForgotten,
    AbortOfTheLast,
    CountedAfterTheCut,
    CountedBeforeTheCutAndAfter,
    CutOmitsHeldEvents,
    CutTakesHeldEventsTwice,
    EventsWithoutTask,
    GatewayNeverCloses,
    OpensOnTheFirstCommit,
    OpensTheNextOne,
    RecordsNotRotated,
    RemainderToBoth,
    RestoreForgetsWhatWasHeld,
)
from pyspark_sluice.tests.protocol.broken_state import (
    BaseOfALaterState,
    CommitCountedTwice,
    CommitForgottenAtRestart,
    CutOutsideTheLock,
    DeletesWhatBasesReferTo,
    OffsetBeforePublish,
    OrdersAreNotWrittenDown,
    OrdersAreTakenAsRead,
    OrphanForParent,
    OrphanGoesOn,
    SkippedBatchIsRead,
)
from pyspark_sluice.tests.protocol.broken_surroundings import (
    CleaningByTheWallClock,
    CleansWhatIsOrdered,
    ConflictIsExistence,
    FenceByNumbers,
    ForgetsItsQuery,
    HandsOutWithoutALook,
    HeartbeatByTheWallClock,
    OptionalWorkEndsTheQuery,
    OrdersFromOneAgain,
    OrphanAsSavepoint,
)

IN_FLIGHT = (
    GatewayNeverCloses,
    OpensOnTheFirstCommit,
    OpensTheNextOne,
    CutOmitsHeldEvents,
    CutTakesHeldEventsTwice,
    RecordsNotRotated,
    AbortOfTheLast,
    AbortForgotten,
    CommitCountedTwice,
    CountedAfterTheCut,
    CountedBeforeTheCutAndAfter,
    RestoreForgetsWhatWasHeld,
    RemainderToBoth,
    OrphanGoesOn,
)
"""Caught by the rows alone: see `planted_plans.txt`."""

GATEWAYS = (GatewayNeverOpens,)
"""Refused by name. For gateways that open too early see `test_gateways_over_files.py`."""

BROKEN = (
    BaseOfALaterState,
    DeletesWhatBasesReferTo,
    OffsetBeforePublish,
    CutOutsideTheLock,
    CommitForgottenAtRestart,
    OrphanForParent,
    EventsWithoutTask,
    OrdersAreNotWrittenDown,
    OrdersAreTakenAsRead,
    SkippedBatchIsRead,
)

SURROUNDINGS = (
    FenceByNumbers,
    ForgetsItsQuery,
    ConflictIsExistence,
    CleaningByTheWallClock,
    HeartbeatByTheWallClock,
    OptionalWorkEndsTheQuery,
    OrdersFromOneAgain,
    CleansWhatIsOrdered,
    HandsOutWithoutALook,
    OrphanAsSavepoint,
)
"""Faults of clocks, answers of the store, optional work and orders."""

ALL = tuple(bug.__name__ for bug in (*BROKEN, *IN_FLIGHT, *GATEWAYS, *SURROUNDINGS))
"""Their names, in the order of `planted_plans.txt`."""
