"""How long a run will take, as far as a plan knows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from tuning.basics.wording import amount, duration


@dataclass(frozen=True)
class RunTime:
    """An estimate.

    Attributes:
        source: what it comes from; where nothing is known, why.
        least, most: wall seconds; None where that is not known.
        slots: on how many.
    """

    source: str
    least: float | None = None
    most: float | None = None
    slots: int = 1

    def __str__(self) -> str:
        if self.least is None:
            return f"not known: {self.source}"
        least, on = duration(self.least), f"on {amount(self.slots, 'slot')}, {self.source}"
        if self.most is None:
            return f"more than {least} {on}"
        most = duration(self.most)
        number, _, unit = least.partition(" ")
        return f"about {number if most.endswith(f' {unit}') else least} to {most} {on}"

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {"least": self.least, "most": self.most, "source": self.source}

    def within(self, budget: float | None) -> Self:
        """The same of a run that ends after this time at the latest, in seconds; None is no limit."""
        if budget is None or self.least is None or (self.most is not None and self.most <= budget):
            return self
        return replace(self, source=f"{self.source}; time_budget ends it", least=min(self.least, budget), most=budget)
