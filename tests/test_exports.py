"""What `import pyspark_sluice` gives, and what it costs; the tree of its errors."""

import inspect
import pickle
import sys

import pytest

import pyspark_sluice
from pyspark_sluice import errors
from pyspark_sluice.tests.patience import output_of

CLASSES = [getattr(errors, name) for name in errors.__all__]


def test_every_exported_name_is_there_in_order():
    assert pyspark_sluice.__all__ == sorted(pyspark_sluice.__all__)
    assert all(hasattr(pyspark_sluice, name) for name in pyspark_sluice.__all__)


def test_nothing_heavy_is_imported_before_a_name_is_used():
    program = (
        "import sys, pyspark_sluice\n"
        "print({'pyarrow', 'pydantic', 'pyspark'} & sys.modules.keys() or 'nothing')"
    )
    assert output_of([sys.executable, "-c", program]) == "nothing\n"


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_error_survives_pickling_with_all_its_parts(kind):
    error = kind("what", "where", "this", "that", "do so")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error) == "what: where; found this; expected that. do so"


def test_the_list_of_public_errors_is_complete_and_sorted():
    defined = [
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception)
    ]
    assert sorted(defined) == errors.__all__
