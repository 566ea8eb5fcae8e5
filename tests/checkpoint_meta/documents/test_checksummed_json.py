"""The checksum within a JSON document."""

import pytest

from pyspark_sluice.checkpoint_meta.documents.checksummed_json import (
    with_checksum,
    without_checksum,
)


@pytest.mark.parametrize(
    "document",
    [{}, {"a": 1}, {"format": 1, "a": [1, {"checksum": "x"}], "checkpoint_checksum": "é"}],
)
def test_each_bit_and_each_byte_of_a_document_counts(document):
    data = with_checksum(document)
    assert without_checksum(data) == document
    damaged = [data + b" ", data + data]
    for at in range(len(data)):
        flipped = [data[at] ^ 1 << bit for bit in range(8)]
        damaged += [data[:at] + bytes([byte]) + data[at + 1 :] for byte in flipped]
        damaged += [data[:at], data[:at] + b" " + data[at:]]
    for one in damaged:
        with pytest.raises(ValueError, match=r"\w"):
            without_checksum(one)
