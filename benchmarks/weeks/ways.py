"""Ways to serve customers week after week, driven by the program itself; each keeps its releases under its own name."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from benchmarks.quality.sets import TARGET
from tuning import TuneRunner
from tuning.definition.definition import Definition
from tuning.errors import NoModelError
from tuning.models.customer_model import CustomerModel, load_model
from tuning.planning.studies import Fixed
from tuning.runs.results import RunResult
from tuning.serving.champion import Champion
from tuning.serving.models import ReleaseModels
from tuning.serving.plan import ALWAYS, BETTER, CHAMPION, RefreshOptions, plan_refresh
from tuning.serving.plan import NEVER as NOBODY
from tuning.serving.promoting import promote_run
from tuning.serving.refresh import Refresh
from tuning.serving.releases import Releases
from tuning.storage.run_directory import RunDirectory


def trained_here(definition: Definition, fixed: Fixed, folder: str) -> RunDirectory:
    """The run of a refresh, in this process."""
    runner = TuneRunner(definition, fixed=fixed)
    return runner.run(folder, in_process=True, progress=False, resume=True).directory


def core_seconds() -> float:
    """CPU seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


def mean_loss(model: CustomerModel, rows: pd.DataFrame) -> float:
    """The mean squared error."""
    return float(((rows[TARGET].to_numpy() - model.prediction(rows).values) ** 2).mean())


@dataclass
class WeeklyWay(ABC):
    """One of them.

    name: of the way and of its releases. definition: of the searches. storage: folder of all releases and runs.
    seconds: CPU seconds of all weeks. promotions: champions that were replaced by another configuration.
    false: of these, whose successor was no better; None where both were not fitted on the same rows.
    """

    name: str
    definition: Definition
    storage: Path
    seconds: float = 0.0
    promotions: int = 0
    false: int | None = field(default=None, init=False)

    @property
    def releases(self) -> Releases:
        return Releases(self.name, self.storage)

    def begin(self, first: RunResult) -> None:
        """Serve a first run's winners."""
        promote_run(first, self.releases)

    @abstractmethod
    def learn(self, week: int) -> None:
        """Do what is to be done once the rows of a week have come."""

    def update(self, week: int, judging: Mapping[str, pd.DataFrame]) -> None:
        """`learn`, counted. judging: rows of the next week, by customer, by which promotions are judged."""
        number, began = self.releases.current().number, core_seconds()
        self.learn(week)
        self.seconds += core_seconds() - began
        release = self.releases.current()
        if release.number == number:
            return
        promoted = {name: each for name, each in self._champions().items() if each.since == release.number}
        self.promotions += len(promoted)
        if self.false is None or release.run is None:
            return
        before = RunResult(self.releases.run_directory(release.run), CHAMPION)  # with the same rows
        for name, champion in promoted.items():
            if name in judging and name in before:
                rows = judging[name]
                self.false += mean_loss(self._model(champion), rows) >= mean_loss(before.model(name), rows)

    def losses(self, judging: Mapping[str, pd.DataFrame]) -> dict[str, float]:
        """By customer the mean loss of what serves now; customers without rows or an answer are left out."""
        models = ReleaseModels(self.name, str(self.storage), self.releases.current().number)
        found = {}
        for name, rows in judging.items():
            try:
                found[name] = mean_loss(models.of(name).model, rows)
            except NoModelError:
                continue
        return found

    def _model(self, champion: Champion) -> CustomerModel:
        assert champion.model_path is not None
        return load_model(self.releases.run_directory(champion.run), champion.model_path, champion.model_sha256)

    def _champions(self) -> dict[str, Champion]:
        return self.releases.state(self.releases.current())


class RetrainedWay(WeeklyWay):
    """A search for everybody every week, whose winners serve."""

    def learn(self, week: int) -> None:
        result = TuneRunner(self.definition).run(
            self.storage / f"{self.name}-{week:03d}", in_process=True, progress=False
        )
        promote_run(result, self.releases)


@dataclass
class RefreshedWay(WeeklyWay):
    """A refresh with the rule of promotion that the way is called by."""

    def __post_init__(self) -> None:
        self.false = 0

    def learn(self, week: int) -> None:
        rule = NOBODY if self.name == FITTED else self.name
        plan = plan_refresh(self.definition, self.releases, RefreshOptions(promotion=rule))
        Refresh(plan, self.releases, trained_here).run()


class FirstWay(WeeklyWay):
    """The first models stay."""

    def learn(self, week: int) -> None:
        pass


RETRAIN, FITTED, NEVER = "retrain", "fitted", "never"
WAYS: dict[str, type[WeeklyWay]] = {
    RETRAIN: RetrainedWay,
    ALWAYS: RefreshedWay,
    BETTER: RefreshedWay,
    FITTED: RefreshedWay,
    NEVER: FirstWay,
}
