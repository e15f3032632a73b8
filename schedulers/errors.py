"""What is wrong with a scheduler or a stopping rule, in words that say what to change."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import get_args

from pydantic import ValidationError


class SchedulerError(ValueError):
    """A scheduler is unknown, misconfigured or cannot be used like this; the message says what to change."""


_WORDS = {
    "Value error, ": "",
    "Input should be": "must be",
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "greater than": "above",
    "less than": "below",
}


def switch_for_number(value: object, annotation: object) -> bool:
    """Whether true or false stands where a number belongs, and pydantic would take it for 1 or 0."""
    if not isinstance(value, bool):
        return False
    kinds, unseen = set(), [annotation]
    while unseen:
        kinds.add(kind := unseen.pop())
        unseen += get_args(kind)
    return bool not in kinds and bool({int, float} & kinds)


def complaints(error: ValidationError) -> str:
    """pydantic's findings in one line: option, value and rule."""
    return "; ".join(
        f"{'.'.join(map(str, each['loc'])) or 'options'} = {each['input']!r}: {_rule(each['msg'])}"
        for each in error.errors()
    )


def _rule(message: str) -> str:
    """pydantic's sentence in this program's words."""
    for word, plain in _WORDS.items():
        message = message.replace(word, plain)
    return message.partition(", unable to")[0].partition(", got a number")[0]


def did_you_mean(word: str, valid: Iterable[str]) -> str:
    """The part of a message that names the nearest valid word, if one is near, and all of them."""
    valid = sorted(valid)
    longer = [name for name in valid if word and name.startswith(word.lower())]
    close = longer or difflib.get_close_matches(word.lower(), valid, n=1)
    return f"{f'did you mean {close[0]!r}? ' if close else ''}valid: {', '.join(valid) or 'none'}"
