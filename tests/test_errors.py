"""The error tree: every class pickles with all its parts, and the list of them is complete."""

from __future__ import annotations

import inspect
import pickle

import pytest

from pyspark_sluice import errors

CLASSES = [getattr(errors, name) for name in errors.__all__]


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
