"""What a run searches: its definition, and what that leaves open, resolved once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from schedulers import stopping
from schedulers.direction import Mode
from schedulers.stopping import RuleSpec
from search_spaces import SearchSpace
from tuning.basics.documents import Json
from tuning.definition.definition import Definition


@dataclass(frozen=True)
class RunSpec:
    """A definition together with what planning made of it.

    It is resolved once, written into the plan file and read by workers, which resolve nothing again: another version
    of a library on another machine cannot give them another search space.

    Attributes:
        definition: as the run keeps it, so that the user's code is found in the run directory.
        task: "regression", "binary" or "multiclass"; None for an objective.
        metric: its name.
        mode: the metric's better direction, "max" or "min".
        space: the run's search space, without models that cannot do the task. A customer may have another one.
        stop: the stopping rules of every study, the seconds of a comparison among them.
        positive: the positive class of a binary task; None where no customer looked at has two classes.
        time_column: the date by which the latest rows are held out where `split` does not say how; None for at random.
        portfolio: the configurations that studies try first, each as far as its search space has them.
    """

    definition: Definition
    task: str | None
    metric: str
    mode: Mode
    space: SearchSpace
    stop: tuple[RuleSpec, ...]
    positive: str | int | float | bool | None = None
    time_column: str | None = None
    portfolio: tuple[Mapping[str, object], ...] = ()

    @cached_property
    def by_time(self) -> Definition:
        """The definition with `time_column` in its `split`."""
        split = self.definition.split.model_copy(update={"column": self.time_column})
        return self.definition.model_copy(update={"split": split})

    def to_dict(self) -> dict[str, object]:
        """Return everything but the definition as plain values."""
        return {
            "task": self.task,
            "metric": self.metric,
            "mode": self.mode,
            "space": self.space.to_dict(),
            "stop": {rule.name: rule.to_dict() for rule in self.stop},
            "positive": self.positive,
            "time_column": self.time_column,
            "portfolio": list(self.portfolio),
        }

    @classmethod
    def from_dict(cls, values: Json, definition: Definition) -> RunSpec:
        """Return the spec that `to_dict` wrote, with its definition."""
        return cls(
            definition=definition,
            task=values["task"],
            metric=values["metric"],
            mode=values["mode"],
            space=SearchSpace.from_dict(values["space"]),
            stop=stopping.parse(values["stop"]),
            positive=values["positive"],
            time_column=values["time_column"],
            portfolio=tuple(values["portfolio"]),
        )
