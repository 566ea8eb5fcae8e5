"""Finds columns by their names, as Spark does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property


class ColumnNames:
    """Finds a name as it is written, or else without regard to case."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(names)
        self._exact = _places(self.names)

    def __contains__(self, name: str) -> bool:
        return name in self._exact or name.lower() in self._folded

    def find(self, name: str) -> str | None:
        """Return the name as it is spelled here, the first of several; None if it is absent."""
        places = self.places_of(name)
        return self.names[places[0]] if places else None

    def places_of(self, name: str) -> Sequence[int]:
        """Return where the name is; several places if they match equally well."""
        return self._exact.get(name) or self._folded.get(name.lower(), ())

    def alike(self, name: str) -> Sequence[str]:
        """Return all names that are this one to Spark, in their order."""
        return [self.names[place] for place in self._folded.get(name.lower(), ())]

    @property
    def twice(self) -> Sequence[str]:
        """The first names that are one to Spark; none if all differ."""
        return next((hits for name in self.names if len(hits := self.alike(name)) > 1), ())

    @cached_property
    def _folded(self) -> Mapping[str, Sequence[int]]:
        return _places(name.lower() for name in self.names)


def _places(names: Iterable[str]) -> Mapping[str, Sequence[int]]:
    # A search for each of twenty thousand columns takes seconds.
    places: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        places.setdefault(name, []).append(index)
    return places
