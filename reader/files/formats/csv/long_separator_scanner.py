"""`univocity_scanner.py` for separators of several characters, which Spark treats apart."""

from __future__ import annotations

from typing_extensions import override

from .dialect import BLANKS, Rules
from .univocity_scanner import Scanner, Token

__all__ = ["LongScanner"]


class LongScanner(Scanner):
    """Reads records whose fields stand between separators of several characters."""

    def __init__(self, rules: Rules, text: str, *, is_end: bool = True) -> None:
        super().__init__(rules, text, is_end=is_end)
        self._long = rules.sep
        self._matched = 0
        """Characters of a separator that were read and may yet turn out to be none."""

    @override
    def record(self) -> list[Token]:
        self._matched = 0
        return super().record()

    @override
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
                self._is_odd, self._before = False, "\0"
                if self._char == rules.quote and not self._value:
                    self._trims = False
                    self._quoted()
                    self._end_value()
                else:
                    self._plain()
            if self._char != self._feed:
                self._next()
                if self._char == self._feed:
                    self._row.append(None)

    @override
    def _plain(self) -> None:
        self._to_the_end(behind_blanks=False)
        if self._rules.trailing:
            self._value = ["".join(self._value).rstrip(BLANKS)]
        self._end_value()

    @override
    def _to_the_end(self, *, behind_blanks: bool) -> None:
        if behind_blanks:
            # An odd quote with blanks behind it takes the rest of the record, separators and all.
            self._until(self._rules.literal)
            return
        while self._char != self._feed:
            if self._long[self._matched] == self._char:
                self._matched += 1
                if self._matched == len(self._long):
                    break
            elif self._matched:
                self._keep_matched()
                continue
            else:
                self._value.append(self._char)
            self._next()
        self._keep_matched()

    @override
    def _quoted(self) -> None:
        rules = self._rules
        self._next()
        while not (self._before == rules.quote and (self._char <= " " or self._char == self._feed)):
            if self._before == rules.quote and self._is_separator():
                return
            char = self._char
            if char not in (rules.quote, rules.escape):
                if self._before == rules.quote:
                    self._is_odd = True
                    self._literally("", char)
                    return
                if self._before == rules.escape != "\0":
                    self._value.append(rules.escape)
                self._until(rules.inside)
            else:
                self._unescape()
            self._before = self._char
            self._next()
        if self._char != self._feed and not self._is_separator(keep=False):
            self._after_quote()

    @override
    def _after_quote(self) -> None:
        blanks = ""
        while True:
            blanks += self._char
            self._next()
            if self._char == self._feed or self._is_separator(keep=False):
                return
            if self._char > " ":
                break
        if not self._is_separator(keep=False):
            self._literally(blanks, self._char)

    @override
    def _is_cut_off(self) -> bool:
        is_cut_off = super()._is_cut_off()
        if self._matched:
            self._keep_matched()
            return True
        return is_cut_off

    @override
    def _skip_blanks(self) -> None:
        while self._char <= " " and self._char not in (self._feed, self._rules.quote):
            self._next()
            if self._long[self._matched] == self._char and self._is_separator():
                self._row.append(None)
                self._next()
        self._keep_matched()

    def _is_separator(self, *, keep: bool = True) -> bool:
        """True at a separator, of which the last character then is the current one."""
        while self._char == self._long[self._matched]:
            self._matched += 1
            if self._matched == len(self._long):
                self._matched = 0
                return True
            self._next()
        if keep:
            self._keep_matched()
        return False

    def _keep_matched(self) -> None:
        if 0 < self._matched < len(self._long):
            self._value.append(self._long[: self._matched])
        self._matched = 0
