"""Names among which an option chooses."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Self


class NameInAnyCase(StrEnum):
    """One of several names, however it is capitalised."""

    @classmethod
    def other_names(cls) -> Mapping[str, str]:
        """What else is understood, in lower case, and the name that it means."""
        return {}

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        text = str(value).lower()
        name = cls.other_names().get(text, text)
        return next((member for member in cls if member.value.lower() == name), None)
