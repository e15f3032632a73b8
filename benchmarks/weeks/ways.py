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
from tuning.champions.champion import Challenger, Champion, rows_of
from tuning.champions.models import ReleaseModels
from tuning.champions.promoting import NEWEST, promote_run
from tuning.champions.release import CHALLENGERS
from tuning.champions.releases import Releases
from tuning.definition.definition import Definition
from tuning.errors import NoModelError
from tuning.models.customer_model import CustomerModel, load_model
from tuning.refresh.options import RefreshOptions
from tuning.refresh.plan import plan_refresh
from tuning.refresh.refresh import Refresh
from tuning.runs.results import RunResult


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
        served, standing = self._champions(), self._challengers()
        number, began = self.releases.current().number, core_seconds()
        self.learn(week)
        self.seconds += core_seconds() - began
        now = self.releases.current().number
        promoted = [] if now == number else [each.customer for each in self._champions().values() if each.since == now]
        self.promotions += len(promoted)
        if self.false is not None:
            self.false += sum(
                self._no_better(served[name], standing[name], judging[name])
                for name in promoted
                if name in standing and name in judging
            )

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

    def _no_better(self, champion: Champion, challenger: Challenger, rows: pd.DataFrame) -> bool:
        loss, other = (mean_loss(self._model(each), rows) for each in (champion, challenger))
        return other >= loss

    def _model(self, of: Champion | Challenger) -> CustomerModel:
        assert of.model_path is not None
        return load_model(self.releases.run_directory(of.run), of.model_path, of.model_sha256)

    def _champions(self) -> dict[str, Champion]:
        releases = self.releases
        return {each.customer: each for each in rows_of(releases.champions(releases.current()), Champion)}

    def _challengers(self) -> dict[str, Challenger]:
        table = self.releases.table(self.releases.current(), CHALLENGERS)
        return {} if table is None else {each.customer: each for each in rows_of(table, Challenger)}


class RetrainedWay(WeeklyWay):
    """A search for everybody every week, whose winners serve."""

    def learn(self, week: int) -> None:
        result = TuneRunner(self.definition).run(
            self.storage / f"{self.name}-{week:03d}", in_process=True, progress=False
        )
        promote_run(result, self.releases, NEWEST)


@dataclass
class RefreshedWay(WeeklyWay):
    """A refresh with the rule of promotion that the way is called by."""

    def __post_init__(self) -> None:
        self.false = 0

    def learn(self, week: int) -> None:
        plan = plan_refresh(self.definition, self.releases, RefreshOptions(promotion=self.name))
        Refresh(plan, self.releases).run(in_process=True)


class FirstWay(WeeklyWay):
    """The first models stay."""

    def learn(self, week: int) -> None:
        pass


RETRAIN, NEVER = "retrain", "never"
WAYS: dict[str, type[WeeklyWay]] = {
    RETRAIN: RetrainedWay,
    NEWEST: RefreshedWay,
    "sure": RefreshedWay,
    "expected": RefreshedWay,
    NEVER: FirstWay,
}
