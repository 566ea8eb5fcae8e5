"""What storageOptions keep secret is in no error and no cause of one."""

import pickle
import traceback
from urllib.parse import quote

import pytest

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.session.processes import plain_errors
from pyspark_sluice.errors import OptionError, ProtocolError, SourceUnavailable
from pyspark_sluice.masking import hide, masked

SECRET = "tOp/sEcr+et="
OPTIONS = {
    "key": "AKIA-the-key-id",
    "client_kwargs": {"aws_session_token": SECRET, "region_name": "eu-central-1"},
    "endpoint_url": "https://somebody:pa55word@minio.example:9000",
    "anon": False,
    "default_block_size": 100,
}


@pytest.fixture(autouse=True)
def _hidden():
    hide(OPTIONS)


class Stubborn(Exception):
    """Its text is not made of its arguments."""

    def __str__(self):
        return f"token {SECRET} has expired"


def test_every_form_of_a_secret_is_masked_and_what_helps_is_reported():
    for form in (SECRET, quote(SECRET, safe=""), "AKIA-the-key-id", "pa55word"):
        assert masked(f"x {form} y") == "x *** y"
    helpful = "https://minio.example:9000 in eu-central-1, 100"
    assert masked(helpful) == helpful


def test_an_error_never_shows_it_in_what_it_quotes():
    error = SourceUnavailable("no", f"s3://b?sig={SECRET}", Stubborn().__str__(), "", SECRET)
    again = pickle.loads(pickle.dumps(error))
    for told in (str(error), repr(error), repr(error.args), error.found, str(again)):
        assert SECRET not in told
        assert "***" in told


@pytest.mark.parametrize("kind", [ValueError, ProtocolError, Stubborn, OSError])
def test_what_reaches_the_user_tells_it_nowhere_in_its_history(kind):
    @plain_errors()
    def fails():
        try:
            try:
                raise Stubborn("unrelated")
            except Stubborn as error:
                raise KeyError({"token": [SECRET]}) from error
        except KeyError as error:
            if kind is OSError:
                raise OSError(5, f"sent {SECRET}", f"/{SECRET}") from error
            raise kind(f"sent {SECRET}") from error

    with pytest.raises(Exception, match=r"\*\*\*") as caught:
        fails()
    lines = "".join(traceback.format_exception(caught.value))
    # The lines of this file say where a secret was, by name.
    assert SECRET not in lines
    assert "KeyError" in lines
    if kind is not Stubborn:
        assert isinstance(caught.value, kind)


def test_options_that_are_parsed_are_hidden_from_then_on():
    given = {"path": "s3://b/x", "storageOptions": '{"secret": "never-told-before"}'}
    options = parse_options(given, streaming=False)
    assert "never-told-before" not in repr(options)
    assert "never-told-before" not in str(OptionError("it was never-told-before"))
