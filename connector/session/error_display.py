"""What a person sees when something fails: the error message without the traceback.

An error of the tree says what happened, where and the remedy; this package's frames around it, and
the exceptions it was made of, would only bury that. A `ProtocolError` is a bug of this package, so
it keeps them, as any other exception does, but for the secrets in them. Not here: the errors
themselves (`errors.py`), and which texts are secret (`masking.py`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import ProtocolError, SluiceError, without_history
from ...masking import without_secrets

_HIDE = "SPARK_HIDE_TRACEBACK"
"""What Spark's Python processes look at before they write an exception down for the JVM."""


@contextmanager
def plain_errors() -> Iterator[None]:
    """Around every call of Spark's: our errors leave without their history.

    A process of Spark's ends with the exception that it hands over, so the switch concerns that
    one alone.
    """
    try:
        yield
    except SluiceError as error:
        if isinstance(error, ProtocolError):
            without_secrets(error)
            raise
        if is_process_of_spark():
            os.environ[_HIDE] = "1"
        raise without_history(error) from None
    except Exception as error:
        shown = without_secrets(error)
        if shown is error:
            raise
        raise shown from shown.__cause__


def is_process_of_spark() -> bool:
    """True in a process that Spark has started for Python."""
    # Spark runs its workers by `python -m pyspark...`; a script or a notebook has no such spec.
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")
