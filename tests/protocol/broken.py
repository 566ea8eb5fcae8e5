"""Coordinators with one planted bug each. The simulation has to catch every one of them."""

from __future__ import annotations

from pyspark_sluice.tests.protocol.broken_gateways import (
    GatewayNeverOpens,
    NoGateway,
    OpensAtHandOut,
    OpensOnAnotherReadersCommit,
)
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
"""Caught by nothing but rows: see `RowsOnly`."""

GATEWAYS = (NoGateway, GatewayNeverOpens, OpensOnAnotherReadersCommit, OpensAtHandOut)
"""A part is handed out too early, or never: refused by name, or rows are lost or doubled."""

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
)
