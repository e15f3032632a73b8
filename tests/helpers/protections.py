"""What a protection is, and how it is switched off in a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Protection:
    """off: switches it off. test: `file::test` that fails then."""

    what: str
    off: Callable[[Patch], Any]
    test: str
    marks: tuple[Any, ...] = field(default=())


def setting(**values: Any) -> Callable[[Patch], None]:
    """Put other values in the place of some names; `__` stands for a dot."""

    def off(patch: Patch) -> None:
        for name, value in values.items():
            patch.setattr(name.replace("__", "."), value)

    return off
