"""Champions of a few small shops, and weeks of rows for them, refreshed in this process."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from tuning import RunResult, TuneRunner
from tuning.definition.definition import Definition
from tuning.definition.given import definition_of
from tuning.planning.studies import Fixed
from tuning.serving.champion import Champion
from tuning.serving.plan import RefreshOptions, RefreshPlan, plan_refresh
from tuning.serving.promoting import promote_run
from tuning.serving.refresh import Refresh, Refreshed
from tuning.serving.releases import Releases
from tuning.storage.run_directory import RunDirectory

NAME = "shops"
GIVEN = {
    "target": "y", "metric": "rmse", "models": ["ridge"], "algorithm": "random", "scheduler": "fifo", "trials": 2,
    "slots": 1, "mlflow": False, "report": False, "ensemble": "none", "portfolio": "none",
    "split": {"type": "time", "column": "day"},
}  # fmt: skip
FLAT = [{"estimator": "ridge", "search_space": {"alpha": {"type": "constant", "value": 1e3}}}]  # poor


def rows(seed: int, count: int, start: str = "2020-01-01") -> pd.DataFrame:
    """The first rows of an endless table of a shop, one a day."""
    rng = np.random.default_rng(seed)
    x, z, noise = rng.normal(size=(3, 1000))
    day = pd.date_range(start, periods=1000, freq="D").strftime("%Y-%m-%d")
    frame = pd.DataFrame({"day": day, "x": x, "z": z, "y": 3.0 * x + z + noise / 5})
    return frame.assign(plan=rng.choice(["basic", "pro"], 1000))[:count]


def trained_here(definition: Definition, fixed: Fixed, folder: str) -> RunDirectory:
    """The run of a refresh, in this process."""
    runner = TuneRunner(definition, fixed=fixed)
    return runner.run(folder, in_process=True, progress=False, resume=True).directory


class ShopWeeks:
    """folder: has the shops' files in `data`, one each, and the champions in `runs`."""

    def __init__(self, folder: Path, **fields: object) -> None:
        self.folder, self.fields = folder, {**GIVEN, **fields}
        self.data = folder / "data"

    @classmethod
    def begun(cls, folder: Path, names: Sequence[str], count: int = 60, **fields: object) -> ShopWeeks:
        """With a first release."""
        weeks = cls(folder, **fields)
        weeks.data.mkdir(parents=True)
        for number, name in enumerate(names):
            weeks.write(name, rows(number, count))
        weeks.promote("first")
        return weeks

    def copied(self, folder: Path) -> ShopWeeks:
        """The same in another folder."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return ShopWeeks(folder, **self.fields)

    def write(self, name: str, frame: pd.DataFrame) -> None:
        frame.to_csv(self.data / f"{name}.csv", index=False)

    @property
    def releases(self) -> Releases:
        return Releases(NAME, self.folder / "runs")

    @property
    def definition(self) -> Definition:
        return definition_of(None, {"data": f"{self.data}/*.csv", **self.fields})

    def promote(self, run: str, **fields: object) -> None:
        """Search, and promote the run."""
        definition = definition_of(self.definition, fields)
        TuneRunner(definition).run(self.folder / "runs" / run, in_process=True, progress=False)
        promote_run(RunResult(self.folder / "runs" / run), self.releases)

    def plan(self, **options: object) -> RefreshPlan:
        return plan_refresh(self.definition, self.releases, RefreshOptions(**options))  # type: ignore[arg-type]  # whatever options are

    def refresh(self, **options: object) -> Refreshed:
        return Refresh(self.plan(**options), self.releases, trained_here).run()

    def state(self) -> dict[str, Champion]:
        return self.releases.state(self.releases.current())
