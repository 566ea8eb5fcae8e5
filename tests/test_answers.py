"""A recorded answer is Spark's, for the same inputs, in the same types; or the test fails."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pyspark.errors import PySparkException

from pyspark_sluice.tests import answers
from pyspark_sluice.tests.answers import AnswerFile, RefusedBySparkError, SparkAnswers

VALUES = [
    {"a": 1, "b": 1.0, "c": True, "d": None, "e": "\ud83d\u0000", "f": [[], {}, ""]},
    {"a": b"\xff\x00", "b": date(1, 1, 1), "c": Decimal("1.50"), "d": (1, ("x",))},
    [{"a": 1, "b": None}, {"a": None, "b": [{"c": 1}, {"c": 2}]}],
    [{"a": 1}, {"b": 1}],
    [datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1)],  # noqa: DTZ001
    "x" * 20_000_000,
    b"x" * 20_000_000,
]


@pytest.fixture
def answer(tmp_path, monkeypatch):
    """An answer to a question, by a new reading of the file."""

    def asked(source, value, *inputs):
        monkeypatch.setattr(answers, "SOURCE", source)
        monkeypatch.setattr(answers, "LINE", answers.NEWEST_LINE)
        file = AnswerFile(tmp_path / "test_it.py")
        try:
            return SparkAnswers(file, "test", lambda: value)(_raised_or_same, *inputs)
        finally:
            if source == "record":
                file.write()

    return asked


def _raised_or_same(value):
    if isinstance(value, Exception):
        raise value
    return value


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_an_answer_is_read_as_it_was_recorded(answer, tmp_path, value):
    assert answer("record", value) == value
    assert repr(answer("recorded", None)) == repr(answer("ask", value))
    assert answer("recorded", None) == value
    assert answer("compare", value) == value
    (file,) = (tmp_path / "answers").iterdir()
    assert file.stat().st_size < 500


def test_an_error_of_spark_is_raised_again(answer):
    error = PySparkException("Job aborted.\n\tat x\nCaused by: java.lang.E: /tmp/a/b.csv, row 1")
    for source in ("record", "recorded", "ask"):
        with pytest.raises(RefusedBySparkError, match=r"java\.lang\.E: PATH, row 1"):
            answer(source, error)


def test_an_answer_that_is_missing_or_for_other_inputs_says_how_to_record_it(answer, tmp_path):
    with pytest.raises(AssertionError, match=r"has no answer: test, .*`make answers`"):
        answer("recorded", None)
    path = tmp_path / "a.csv"
    path.write_bytes(b"1\n")
    inputs = path, {"sep": ","}, "a int"
    answer("record", 1, *inputs)
    assert answer("recorded", None, *inputs) == 1
    for changed in ((path, {"sep": ";"}, "a int"), (path, {"sep": ","}, "a long")):
        with pytest.raises(AssertionError, match=r"an answer for other inputs: .*`make answers`"):
            answer("recorded", None, *changed)
    path.write_bytes(b"2\n")
    with pytest.raises(AssertionError, match=r"an answer for other inputs: .*`make answers`"):
        answer("recorded", None, *inputs)


@pytest.mark.parametrize(
    ("recorded", "live"), [([1], [2]), ([1], [1.0]), ([1], [True]), ([], None)]
)
def test_an_answer_that_spark_no_longer_gives_is_a_failure(answer, recorded, live):
    answer("record", recorded)
    with pytest.raises(AssertionError, match="Spark answers otherwise: test"):
        answer("compare", live)
