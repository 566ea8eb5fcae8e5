"""What has to fit together where a queue tells of files.

Not here: the options themselves (`enumerator/files/discovery/discovery_options.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...checkpoint_meta.storage.client_options import uses_fsspec
from ...checkpoint_meta.storage.input_paths import loaded_paths
from ...checkpoint_meta.storage.providers import BY_SCHEME, S3
from ...checkpoint_meta.storage.urls import scheme_of, storage_url
from ...enumerator.files.discovery.discovery_options import DiscoveryOptions
from ...errors import OptionError


def queue_problems(
    options: DiscoveryOptions, path: str, storage_options: Mapping[str, Any]
) -> Iterator[str]:
    """What is wrong with discoveryMode=notifications, or with a queue without it."""
    queues = {"queueUrl": options.queue_url, "deadLetterQueueUrl": options.dead_letter_queue_url}
    if options.discovery_mode != "notifications":
        for name, url in queues.items():
            if url:
                yield (
                    f"{name}: found without discoveryMode=notifications; expected that mode with "
                    "it, or neither"
                )
        return
    if not options.queue_url:
        yield (
            "queueUrl: found nothing; discoveryMode=notifications expects the URL of a queue of "
            "SQS that receives the events of the bucket"
        )
    for name, url in queues.items():
        if url and not url.startswith(("https://", "http://")):
            yield f"{name}: found {url}; expected the URL of a queue of SQS"
    try:
        bases = [storage_url(one.base) for one in loaded_paths(path)]
        by_fsspec = uses_fsspec(storage_options)
    except (ValueError, OptionError) as error:
        yield str(error)
        return
    if by_fsspec or any(BY_SCHEME.get(scheme_of(base)) is not S3 for base in bases):
        yield (
            f"discoveryMode=notifications: found {path}"
            + (' with "client": "fsspec"' if by_fsspec else "")
            + "; expected paths that begin s3:// and obstore, the default client"
        )
