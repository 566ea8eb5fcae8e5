"""Options of a queue that do not fit together are refused before any request."""

from __future__ import annotations

import pytest

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.errors import OptionError


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"discoveryMode": "notifications"}, "found notifications without queueUrl"),
        ({"queueUrl": "http://q"}, "queueUrl: found with discoveryMode=full; expected"),
        ({"discoveryMode": "notifications", "queueUrl": "http://q", "path": "/x"}, "s3://"),
        ({"discoveryMode": "notifications", "queueUrl": "http://q", "path": "gs://b"}, "abfss://"),
        ({"discoveryMode": "notifications", "queueUrl": "https://q?sig=abc"}, "sas_token"),
        (
            {
                "discoveryMode": "notifications",
                "queueUrl": "http://q",
                "storageOptions": '{"client": "fsspec"}',
            },
            "obstore",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused_by_name(options, told):
    with pytest.raises(OptionError, match=told):
        parse_options({"path": "s3://b/in", **options}, streaming=False)
