"""Rules of promotion: one file per rule."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path

from tuning.champions.rules.rule import PromotionRule


@cache
def promotion_rules() -> dict[str, PromotionRule]:
    """All rules by name: what the files of this package define."""
    found: dict[str, PromotionRule] = {}
    for info in pkgutil.iter_modules([str(Path(__file__).parent)]):
        module = importlib.import_module(f"{__package__}.{info.name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, PromotionRule) and value is not PromotionRule:
                found[value.name] = value()
    return dict(sorted(found.items()))
