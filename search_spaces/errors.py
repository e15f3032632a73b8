"""The one error of this package: a space, a point or an option that cannot be used, and the way out."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import get_args


class SpaceError(ValueError):
    """A space, a configuration or an algorithm's option is wrong; its author edits, a retry never helps.

    Attributes:
        path: where the mistake is, as in ``parameters.alpha.low``; empty for a mistake of the whole.
    """

    def __init__(self, problem: str, *, path: str = "") -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}" if path else problem)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.problem, self.path))  # crosses process borders with its path

    def under(self, prefix: str) -> SpaceError:
        """Return the same mistake seen from one level further out."""
        return SpaceError(self.problem, path=f"{prefix}.{self.path}" if self.path else prefix)


def _rebuild(problem: str, path: str) -> SpaceError:
    return SpaceError(problem, path=path)


def did_you_mean(word: object, valid: list[str]) -> str:
    """`` (did you mean 'x'?)`` for the valid name nearest to a misspelt one, or nothing."""
    longer = [name for name in valid if word and name.startswith(str(word))]
    close = longer or get_close_matches(str(word), valid, n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


# pydantic's kinds of complaint in this program's words; the places are what it says of the rule.
_RULES = {
    "missing": "is missing",
    "int": "must be a whole number",
    "float": "must be a number",
    "decimal": "must be a number",
    "finite": "must be a finite number",
    "bool": "must be true or false",
    "string_type": "must be text",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "tuple": "must be a list",
    "list": "must be a list",
    "set": "must be a list",
    "dict": "must be a mapping",
    "model": "must be a mapping",
    "mapping": "must be a mapping",
    "literal": "must be {expected}",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be above {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be below {lt}",
}


def switch_for_number(value: object, annotation: object) -> bool:
    """Return whether true or false stands where a number belongs, and pydantic would take it for 1 or 0."""
    if not isinstance(value, bool):
        return False
    kinds, unseen = set(), [annotation]
    while unseen:
        kinds.add(kind := unseen.pop())
        unseen += get_args(kind)
    return bool not in kinds and bool({int, float} & kinds)


def _figure(value: object) -> object:
    """Return a bound as people write it: 1,000,000 and 0.01."""
    if not isinstance(value, int | float):
        return value
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


def rule(complaint: Mapping[str, object]) -> str:
    """Return the rule that a value breaks, from one of pydantic's errors: `must be at least 1`."""
    kind = str(complaint["type"])
    for name in sorted(_RULES, key=len, reverse=True):
        if kind == name or kind.startswith(f"{name}_"):
            places = complaint.get("ctx")
            if not isinstance(places, Mapping):
                return _RULES[name]
            if name == "string_too_short" and places.get("min_length") == 1:
                return "must not be empty"
            return _RULES[name].format(**{place: _figure(value) for place, value in places.items()})
    message = str(complaint["msg"]).removeprefix("Value error, ")
    return message.replace("Input should be", "must be")
