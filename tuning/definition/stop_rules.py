"""The `stop` of a definition: rules that end a trial or a study before its budget is spent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from schedulers import stopping


@dataclass(frozen=True, eq=False)  # a mapping is compared by its items
class StopRules(Mapping[str, object]):
    """Stopping rules, parsed once; as a mapping they read as the user wrote them.

    Attributes:
        given: name of a rule to its options, or to the one value of its short form.
        rules: the parsed rules, in the same order.
    """

    given: Mapping[str, object]
    rules: tuple[stopping.RuleSpec, ...]

    @classmethod
    def parse(cls, value: object) -> StopRules | None:
        """The rules of a mapping; None when there is none.

        Raises:
            SchedulerError: an unknown rule or option (naming the nearest valid one), or a wrong value.
        """
        if value is None or isinstance(value, StopRules):
            return value
        given = value or {}
        rules = stopping.parse(given)
        assert isinstance(given, Mapping)
        return cls(dict(given), rules)

    def to_dict(self) -> dict[str, object]:
        """As the user wrote it."""
        return dict(self.given)

    def __getitem__(self, name: str) -> object:
        return self.given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.given)

    def __len__(self) -> int:
        return len(self.given)
