"""How long a run will take, as far as an earlier run tells it."""

from __future__ import annotations

from dataclasses import dataclass

from tuning.basics.wording import amount, duration


@dataclass(frozen=True)
class RunTime:
    """An estimate.

    Attributes:
        source: the earlier run.
        least, most: wall seconds.
        slots: on how many.
    """

    source: str
    least: float
    most: float
    slots: int = 1

    def __str__(self) -> str:
        least, most = duration(self.least), duration(self.most)
        number, _, unit = least.partition(" ")
        few = number if most.endswith(f" {unit}") else least
        return f"about {few} to {most} on {amount(self.slots, 'slot')}, {self.source}"

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {"least": self.least, "most": self.most, "source": self.source}
