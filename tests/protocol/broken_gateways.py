"""Planted bugs of the gateways: they open too early, for the wrong reader, or never."""

from __future__ import annotations

from collections.abc import Collection

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from pyspark_sluice.enumerator.coordinator.in_flight import CheckpointRecord, Stage
from pyspark_sluice.enumerator.coordinator.subtask_gateway import SubtaskGateway
from pyspark_sluice.tests.protocol.planted import Opened, Planted


class _Absent(SubtaskGateway):
    """Nothing is ever held."""

    def held_under(
        self, record: CheckpointRecord, among: Collection[CheckpointRef] = ()
    ) -> CheckpointRecord | None:
        return None


class GatewayNeverOpens(Planted):
    """A cut closes the gateways for ever."""

    def plant(self, opened: Opened) -> None:
        opened.gateways.gateway = _Shut


class _Shut(SubtaskGateway):
    def held_under(
        self, record: CheckpointRecord, among: Collection[CheckpointRef] = ()
    ) -> CheckpointRecord | None:
        is_first = record.stage is Stage.OPEN or record.checkpoint.header.parent in among
        return None if is_first or record.checkpoint.header.parent_checkpoint == 0 else record


class _OpensForAnother(SubtaskGateway):
    """The commit of any other reader opens a gateway."""

    def held_under(
        self, record: CheckpointRecord, among: Collection[CheckpointRef] = ()
    ) -> CheckpointRecord | None:
        earlier = super().held_under(record, among)
        return None if earlier is not None and earlier.committed - {self.reader} else earlier


class _OpensAtHandOut(SubtaskGateway):
    """What Spark has is not waited for: its end is taken for a commit of each reader."""

    def held_under(
        self, record: CheckpointRecord, among: Collection[CheckpointRef] = ()
    ) -> CheckpointRecord | None:
        earlier = super().held_under(record, among)
        return None if earlier is not None and earlier.stage >= Stage.HANDED_OUT else earlier
