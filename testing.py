"""The suites that every source and every format must pass, for those of your own."""

from .connector.options.model import parse_options
from .connector.testing import SourceSuite
from .reader.files.testing import FileFormatSuite

__all__ = ["FileFormatSuite", "SourceSuite", "parse_options"]
