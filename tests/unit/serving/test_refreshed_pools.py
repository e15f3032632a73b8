"""Refreshes of champions that have the run's pool as a member: it is always one of everybody's rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shop_weeks import trained_here

from tuning import RunResult, TuneRunner
from tuning.definition.given import definition_of
from tuning.planning.plan_notes import AUTO_CUSTOMERS
from tuning.runs.pool_file import read_pool
from tuning.serving.champion import POOL, Champion
from tuning.serving.plan import RefreshOptions, plan_refresh
from tuning.serving.promoting import promote_run
from tuning.serving.refresh import Refresh, Refreshed
from tuning.serving.releases import Releases

pytestmark = pytest.mark.long

FIELDS = {
    "target": "y", "task": "regression", "metric": "rmse", "models": ["ridge"], "algorithm": "random", "trials": 2,
    "scheduler": "fifo", "mlflow": False, "report": False,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuning.evaluation.pooling.BOOSTERS", {"catboost": {"iterations": 100, "depth": 6}})


def rows(seed: int, count: int, first: int = 0) -> pd.DataFrame:
    """What no ridge learns, and what is alike for all customers."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.uniform(-2, 2, size=(2000, 3)), columns=["a", "b", "c"])
    y = np.sin(2 * frame["a"]) * frame["b"] + (frame["c"] > 0) * frame["b"] + rng.normal(scale=0.1, size=2000)
    return frame.assign(y=10.0 * y + 100.0 * seed)[first : first + count]


class Weeks:
    """Champions of some shops whose definition has a pool."""

    def __init__(self, folder: Path, pool: str, shops: int) -> None:
        self.data, self.releases = folder / "data", Releases("shops", folder / "runs")
        self.data.mkdir()
        for number in range(shops):
            self.write(f"s{number:02d}", number, 40)
        self.definition = definition_of(None, {**FIELDS, "pool": pool, "data": f"{self.data}/*.csv"})
        TuneRunner(self.definition).run(folder / "runs" / "first", in_process=True, progress=False)
        promote_run(RunResult(folder / "runs" / "first"), self.releases)

    def write(self, name: str, seed: int, count: int) -> None:
        rows(seed, count).to_csv(self.data / f"{name}.csv", index=False)

    def refresh(self) -> Refreshed:
        plan = plan_refresh(self.definition, self.releases, RefreshOptions())
        return Refresh(plan, self.releases, trained_here).run()

    def champions(self) -> dict[str, Champion]:
        return self.releases.state(self.releases.current())

    def error(self, name: str, seed: int) -> float:
        """Of rows that nobody has seen."""
        champion, new = self.champions()[name], rows(seed, 500, 1000)
        model = RunResult(self.releases.run_directory(champion.run), champion.study.rpartition("/")[2]).model(name)
        return float(np.sqrt(np.mean((model.predict(new.drop(columns="y")) - new["y"]) ** 2)))


@pytest.mark.parametrize(("pool", "shops"), [("on", 6), ("auto", AUTO_CUSTOMERS)])
def test_a_champion_that_learns_again_keeps_a_pool_of_all_customers(tmp_path: Path, pool: str, shops: int) -> None:
    weeks = Weeks(tmp_path, pool, shops)
    before = weeks.champions()["s01"]
    assert before.configuration is not None
    assert '"pool"' in before.configuration
    weeks.write("s01", 1, 46)
    planned = plan_refresh(weeks.definition, weeks.releases, RefreshOptions()).describe()
    assert f"before that, the pool of the rows of {shops} customers is trained" in planned
    done = weeks.refresh()
    assert (list(done.fitted), dict(done.notes)) == (["s01"], {})
    found = read_pool(weeks.releases.run_directory(str(done.release.run)))
    assert found is not None
    assert len(found.customers) == shops
    after = weeks.champions()
    assert (after["s01"].configuration, after["s01"].rows) == (before.configuration, 46)
    result = RunResult(weeks.releases.run_directory(str(done.release.run)))
    assert [*result] == ["s01"], "nothing is done for the others"


def test_a_refresh_that_was_killed_before_its_release_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weeks = Weeks(tmp_path, "on", 4)
    weeks.write("s01", 1, 46)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Releases, "place", killed)
        with pytest.raises(KeyboardInterrupt):
            weeks.refresh()
    done = weeks.refresh()
    assert (list(done.fitted), dict(done.notes)) == (["s01"], {})
    result = RunResult(weeks.releases.run_directory(str(done.release.run)))
    assert ([*result], result.unfinished) == (["s01"], 0)


def test_it_is_no_worse_than_the_one_before(tmp_path: Path) -> None:
    weeks = Weeks(tmp_path, "on", 8)
    first = RunResult(tmp_path / "runs" / "first")
    new = rows(1, 500, 1000)
    before = float(np.sqrt(np.mean((first.model("s01").predict(new.drop(columns="y")) - new["y"]) ** 2)))
    weeks.write("s01", 1, 46)
    weeks.refresh()
    assert weeks.error("s01", 1) < 1.1 * before


def test_a_newcomer_with_few_rows_gets_the_pool_of_all_whoever_else_has_changed(tmp_path: Path) -> None:
    weeks = Weeks(tmp_path, "on", 6)
    weeks.write("tiny", 6, 3)
    done = weeks.refresh()
    assert dict(done.notes) == {}
    tiny = weeks.champions()["tiny"]
    assert tiny.answer == POOL
    found = read_pool(weeks.releases.run_directory(str(done.release.run)))
    assert found is not None
    assert len(found.customers) == 6
    assert weeks.refresh().new is False
