"""What stands in for an object of this process in callbacks that Ray pickles.

Ray pickles callbacks, stoppers and searchers when a Tuner is made. A key travels; a lease, a progress line or a
database connection would not.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

T = TypeVar("T")
_OBJECTS: dict[str, object] = {}


@dataclass(frozen=True)
class CallbackKey(Generic[T]):
    """The key of an object of type T."""

    text: str


def register(obj: T) -> CallbackKey[T]:
    """Keep an object until this process ends, and give its key."""
    key: CallbackKey[T] = CallbackKey(uuid.uuid4().hex)
    _OBJECTS[key.text] = obj
    return key


@contextlib.contextmanager
def registered(obj: T) -> Iterator[CallbackKey[T]]:
    """Keep an object for the time of the `with` block, and give its key."""
    key = register(obj)
    try:
        yield key
    finally:
        del _OBJECTS[key.text]


def lookup(key: CallbackKey[T]) -> T:
    """The object of a key. Raises `KeyError` in another process and after the `with` block."""
    return cast(T, _OBJECTS[key.text])
