"""The state machine of Spark's CSV parser over one text: where fields end and what is in them.

It knows the parser's every answer to odd quotes (`unescapedQuoteHandling` being
`STOP_AT_DELIMITER`), because a field that is cut elsewhere than in Spark is another value. Values
and nulls of a schema are not here (`exact_rows.py`), nor what a line is (`record_splitter.py`).
`Rules` are the options as the parser sees them: which characters have a meaning, and where.
"""

from __future__ import annotations

import re

from ...options import ReaderOptions
from ...values.strings import BLANKS

Token = str | None
"""None for an empty field without quotes, which is null."""

NO_CHARACTER = "\0"
"""An option that is not set, which the parser does not tell from a zero byte in the text."""


class Rules:
    """The options as Spark hands them to its parser, and the patterns that follow from them."""

    def __init__(self, options: ReaderOptions, line_break: str = "") -> None:
        """`line_break` is the file's own one; empty where a record is one line."""
        self.sep = options.sep
        self.quote = options.quote or NO_CHARACTER
        self.escape = options.escape or NO_CHARACTER
        # Univocity's `getCharToEscapeQuoteEscaping`: with doubled quotes no character escapes the
        # escape.
        default = NO_CHARACTER if self.quote == self.escape else self.escape
        self.before_escape = options.char_to_escape_quote_escaping or default
        self.empty = options.empty_value
        self.leading = options.ignore_leading_white_space
        self.trailing = options.ignore_trailing_white_space
        # A separator of one character takes the place of the line feed, which then is text.
        feed = options.line_sep if len(options.line_sep) == 1 else "\n"
        self.breaks = tuple(dict.fromkeys((line_break, feed))) if line_break else ()
        """What ends a record outside of quotes, the file's own first; empty for a single line.

        The last one is the character that the parser takes each of them for.
        """
        # Spark keeps a separator that was set as it is inside of quotes.
        self.quoted_break = line_break if line_break != "\n" and not options.line_sep else ""
        """The break that becomes a line feed inside of quotes; empty for none."""
        # A separator of several characters is looked for by `LongSeparatorScanner`.
        stop = options.sep if len(options.sep) == 1 else NO_CHARACTER
        self.plain = _any_of(stop, *self.breaks[:1])
        """Finds the end of a field without quotes by the file's own line break."""
        self.literal = _any_of(stop, *self.breaks)
        """The same by any line feed as well."""
        self.inside = _any_of(self.quote, self.escape, self.before_escape)
        """Finds what has a meaning inside of quotes."""


def _any_of(*texts: str) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(text) for text in dict.fromkeys(texts)))


# Univocity's `EOFException`, by which `CsvParser` leaves a record in the middle.
class _EndOfText(Exception):
    pass


class Scanner:
    """Reads records one after the other. `at` is where the next one begins.

    A comment above a method names the one of Univocity that it follows.
    """

    def __init__(self, rules: Rules, text: str, *, is_end: bool = True) -> None:
        """`is_end` is false if more text follows, which is not known yet."""
        self._rules = rules
        self._text = text
        self._size = len(text)
        self._sep = rules.sep if len(rules.sep) == 1 else NO_CHARACTER
        self._feed = rules.breaks[-1] if rules.breaks else ""
        self._is_end = is_end
        self.at = 0
        self.is_closed = False
        """True if a line break ended the last record, not the end of the text."""

        self._here = 0
        self._char = self._before = NO_CHARACTER
        self._is_odd = self._trims = False
        self._value: list[str] = []
        self._row: list[Token] = []

    def record(self) -> list[Token]:
        """Return the fields of the next record; none for an empty line."""
        start, self._row = self.at, []
        self._before, self._is_odd, self._trims = NO_CHARACTER, False, False
        try:
            self._next()
            self._fields()
            self.is_closed = True
        except _EndOfText:
            self.is_closed = False
            self.at = self._size
            if self._is_cut_off() or self._value:
                self._end_value()
            # As in `a,`: a field has begun behind the separator, and has no characters.
            elif self._size > start:
                self._row.append(None)
        return self._row

    # `CsvParser.parseSingleDelimiterRecord`.
    def _fields(self) -> None:
        rules = self._rules
        if rules.leading:
            self._skip_blanks()
        while self._char != self._feed:
            if rules.leading:
                self._skip_blanks()
            if self._char == self._feed or self._is_separator():
                self._row.append(None)
            else:
                self._is_odd, self._before = False, NO_CHARACTER
                if self._char != rules.quote or self._value:
                    self._plain()
                elif not self._simply_quoted():
                    self._trims = False
                    self._quoted()
                    self._end_value()
            if self._char != self._feed:
                self._next()
                if self._char == self._feed:
                    self._row.append(None)

    def _is_separator(self) -> bool:
        return self._char == self._sep

    # `CharInputReader.getString`, and `appendUntil` where that gives up.
    def _plain(self) -> None:
        """A field without quotes: nothing in it has a meaning."""
        rules, start = self._rules, self._here
        self._trims = rules.trailing
        match = rules.plain.search(self._text, start)
        last = self._is_end and bool(rules.breaks) and self._size - 1
        if not match and not self._is_end:
            raise _EndOfText
        if not match or (match.start() == last and match[0] == rules.breaks[0]):
            # The end of the text: there, unlike elsewhere, any line feed ends the field.
            self._until(rules.literal)
            self._end_value()
            return
        value = self._text[start : match.start()]
        self._row.append((value.rstrip(BLANKS) if rules.trailing else value) or None)
        self.at = match.start()
        self._next()

    # `CharInputReader.getQuotedString`.
    def _simply_quoted(self) -> bool:
        """Return whether a field was taken whose first quote is its last and that holds no escapes.

        Without an escape character this is not only the fast way: what follows a quoted field
        then depends on it.
        """
        rules, text, start = self._rules, self._text, self.at
        end = text.find(rules.quote, start)
        if end < 0 or text[end - 1] == rules.escape or end + 1 >= self._size:
            return False
        if text[end + 1] not in (self._sep, self._feed):
            return False
        value = text[start:end]
        if rules.escape + rules.before_escape in value:
            return False
        if rules.breaks and rules.breaks[0] in value:
            return False
        self._row.append(value or rules.empty)
        self.at = end + 1
        self._next()
        return True

    # `CsvParser.parseQuotedValue`.
    def _quoted(self) -> None:
        """After an opening quote: up to the separator or line break behind the closing one."""
        ends = (self._sep, self._feed)
        self._next()
        while self._before != self._rules.quote or (self._char > " " and self._char not in ends):
            if not self._take_quoted():
                return
        if self._char not in ends:
            self._after_quote()

    def _take_quoted(self) -> bool:
        """Take what is next inside of quotes; False if the field turned out to be literal text."""
        rules, char = self._rules, self._char
        if char in (rules.quote, rules.escape):
            self._unescape()
        else:
            if self._before == rules.quote:
                self._is_odd = True
                self._take_unescaped_quote("", char)
                return False
            if self._before == rules.escape != NO_CHARACTER:
                self._value.append(rules.escape)
            self._until(rules.inside)
        self._before = self._char
        self._next()
        return True

    def _after_quote(self) -> None:
        blanks = ""
        while True:
            blanks += self._char
            self._next()
            if self._char == self._feed:
                return
            if self._char > " " or self._char == self._sep:
                break
        if self._char != self._sep:
            self._take_unescaped_quote(blanks, self._char)

    # `CsvParser.handleUnescapedQuote` with `STOP_AT_DELIMITER`.
    def _take_unescaped_quote(self, blanks: str, char: str) -> None:
        """A quote that closes nothing: the field is what is there, up to its separator."""
        quote = self._rules.quote
        self._value = [quote, *self._value, quote, blanks, char]
        self._before = char
        self._next()
        self._trims = self._rules.trailing
        self._to_the_end(behind_blanks=bool(blanks))

    def _to_the_end(self, *, behind_blanks: bool) -> None:  # noqa: ARG002 - for the long separators
        self._until(self._rules.literal)

    # `CsvParser.processQuoteEscape`.
    def _unescape(self) -> None:
        """At a quote or an escape inside of quotes."""
        rules, char, before = self._rules, self._char, self._before
        if char == rules.escape and before == rules.before_escape != NO_CHARACTER:
            self._value.append(rules.escape)
            # Used up: it must not escape what follows.
            self._char = NO_CHARACTER
        elif before == rules.escape:
            if char == rules.quote:
                self._value.append(rules.quote)
                self._char = NO_CHARACTER
            else:
                self._value.append(before)
        elif before == rules.quote:
            self._value.append(rules.quote)
            if char != rules.quote:
                self._before = char
                self._escapes()

    # `CsvParser.parseValueProcessingEscape`.
    def _escapes(self) -> None:
        """An escape right behind a closing quote: escapes count, separators end the value."""
        rules = self._rules
        while self._char not in (self._sep, self._feed):
            if self._char in (rules.quote, rules.escape):
                self._unescape()
            else:
                if self._before == rules.quote:
                    self._value.append(rules.quote)
                self._value.append(self._char)
            self._before = self._char
            self._next()

    # `CsvParser.consumeValueOnEOF`.
    def _is_cut_off(self) -> bool:
        """Return whether the text ends within a value, which then is one even if it is empty."""
        rules = self._rules
        if self._char == rules.quote:
            if self._before == rules.quote:
                return True
            if not self._is_odd:
                self._value.append(rules.quote)
        return self._before != NO_CHARACTER and self._char not in (self._sep, self._feed)

    def _end_value(self) -> None:
        text = "".join(self._value)
        self._value.clear()
        if self._trims:
            text = text.rstrip(BLANKS)
        self._row.append(text or self._rules.empty)

    # `CharInputReader.skipWhitespace`.
    def _skip_blanks(self) -> None:
        stops = (self._sep, self._feed, self._rules.quote)
        while self._char <= " " and self._char not in stops:
            self._next()

    def _until(self, pattern: re.Pattern[str]) -> None:
        """Take text from the current character to what the pattern finds, and go there."""
        match = pattern.search(self._text, self._here)
        end = match.start() if match else self._size
        chunk = self._text[self._here : end]
        quoted_break = self._rules.quoted_break
        if quoted_break and pattern is self._rules.inside:
            chunk = chunk.replace(quoted_break, "\n")
        self._value.append(chunk)
        if not match:
            raise _EndOfText
        self.at = end
        self._next()

    def _next(self) -> None:
        if self.at >= self._size:
            raise _EndOfText
        self._here = self.at
        char = self._text[self.at]
        self.at += 1
        # Univocity hands on one character for any line break, so that the rest compares with one
        # only.
        for ending in self._rules.breaks:
            if char == ending[0] and self._text.startswith(ending, self._here):
                char = self._feed
                self.at = self._here + len(ending)
                break
        self._char = char
