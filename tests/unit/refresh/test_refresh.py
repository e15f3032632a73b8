"""A refresh in this process: what becomes of champions as rows come."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pytest
import yaml
from click.testing import CliRunner, Result

from tuning import TuneRunner
from tuning.champions.champion import Challenger, Champion, rows_of
from tuning.champions.drift import LossSoFar
from tuning.champions.promoting import promote_run
from tuning.champions.release import CHALLENGERS, GROUPS, PROMOTE, REFRESH, Release
from tuning.champions.releases import Releases
from tuning.cli.program import main
from tuning.definition.given import definition_of
from tuning.evaluation.fixed import FixedConfiguration
from tuning.refresh.costs import GroupWork
from tuning.refresh.options import RefreshOptions
from tuning.refresh.plan import RefreshPlan, plan_refresh
from tuning.refresh.refresh import Refresh, Refreshed
from tuning.refresh.starts import first_tries
from tuning.refresh.verdicts import groups_of, groups_table
from tuning.runs.results import RunResult

FIELDS = {
    "target": "y", "metric": "rmse", "models": ["ridge"], "algorithm": "random", "scheduler": "fifo", "trials": 2,
    "slots": 1, "mlflow": False, "report": False, "ensemble": "none", "portfolio": "none",
}  # fmt: skip

FLAT = [{"estimator": "ridge", "search_space": {"alpha": {"type": "constant", "value": 1e4}}}]  # about a constant


def write(folder: Path, name: str, rows: int, seed: int = 0, slope: float = 3.0) -> None:
    """The first rows of an endless table of a customer."""
    rng = np.random.default_rng(seed)
    x, z, noise = rng.normal(size=(3, 1000))
    folder.mkdir(exist_ok=True)
    pd.DataFrame({"x": x, "z": z, "y": slope * x + z + noise / 5})[:rows].to_csv(folder / f"{name}.csv", index=False)


class Weeks:
    """Champions of shops."""

    def __init__(self, folder: Path) -> None:
        self.data, self.releases = folder / "data", Releases("shops", folder / "runs")
        self.definition = definition_of(None, {**FIELDS, "data": f"{self.data}/*.csv"})

    @classmethod
    def begun(cls, folder: Path, names: Sequence[str] = ("a", "b", "c")) -> Weeks:
        """With a first release."""
        weeks = cls(folder)
        for number, name in enumerate(names):
            write(weeks.data, name, 60, number)
        TuneRunner(weeks.definition).run(folder / "runs" / "first", in_process=True, progress=False)
        promote_run(RunResult(folder / "runs" / "first"), weeks.releases)
        return weeks

    def plan(self, **options: object) -> RefreshPlan:
        return plan_refresh(self.definition, self.releases, RefreshOptions(**options))

    def refresh(self, **options: object) -> Refreshed:
        return Refresh(self.plan(**options), self.releases).run(in_process=True)

    def champions(self) -> dict[str, Champion]:
        return {each.customer: each for each in rows_of(self.releases.champions(self.releases.current()), Champion)}

    def challengers(self) -> dict[str, Challenger]:
        table = self.releases.table(self.releases.current(), CHALLENGERS)
        return {} if table is None else {each.customer: each for each in rows_of(table, Challenger)}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a first release; to be copied."""
    folder = tmp_path_factory.mktemp("first")
    Weeks.begun(folder)
    return folder


@pytest.fixture
def weeks(first: Path, tmp_path: Path) -> Weeks:
    return Weeks(Path(shutil.copytree(first, tmp_path, dirs_exist_ok=True)))


def test_rows_that_came_are_learned_with_one_fit_and_unchanged_customers_are_left_alone(weeks: Weeks) -> None:
    before = weeks.champions()
    write(weeks.data, "a", 66)
    plan = weeks.plan()
    assert plan.changes.counts == {"unchanged": 2, "grown": 1}
    assert (plan.fitted, plan.searched) == (["a"], [])
    done = weeks.refresh()
    assert (done.new, done.release.why) == (True, REFRESH)
    after = weeks.champions()
    assert (after["b"], after["c"]) == (before["b"], before["c"])
    assert (after["a"].configuration, after["a"].rows) == (before["a"].configuration, 66)
    assert after["a"].model_sha256 != before["a"].model_sha256
    again = weeks.refresh()
    assert (again.new, again.release.number) == (False, done.release.number)


@pytest.mark.long
@pytest.mark.parametrize("promotion", ["sure", "ask"])
def test_a_better_configuration_stands_until_new_rows_make_it_sure(weeks: Weeks, promotion: str) -> None:
    poor = definition_of(weeks.definition, {"models": FLAT, "trials": 1})
    TuneRunner(poor).run(weeks.data.parent / "runs" / "poor", in_process=True, progress=False)
    releases = Releases("others", weeks.data.parent / "runs")
    promote_run(RunResult(weeks.data.parent / "runs" / "poor"), releases)
    weeks.releases = releases
    served = weeks.champions()
    promote_run(RunResult(weeks.data.parent / "runs" / "first"), releases)
    assert set(weeks.challengers()) == {"a", "b", "c"}
    assert weeks.champions() == served
    outcomes = []
    for rows in (210, 360, 510):
        write(weeks.data, "a", rows, 0)
        done = weeks.refresh(grown=9.0, search_every=99, promotion=promotion)
        outcomes += [each.outcome for each in done.decisions]
    assert outcomes[0] == "stands"
    assert outcomes[-1] == {"sure": "promoted", "ask": "proposed"}[promotion]
    if promotion == "ask":
        assert set(weeks.challengers()) == {"a", "b", "c"}
        given = ["promote", "--accept", done.proposal, "--storage", str(weeks.data.parent / "runs")]
        assert CliRunner().invoke(main, given).stdout == "release 6 of others: 1 challenger promoted\n"
        late = CliRunner().invoke(main, given)
        assert late.exit_code == 6
        assert "the proposal is for release 5 of others, and release 6 is in force" in late.output
    after = weeks.champions()
    assert after["a"].configuration != served["a"].configuration
    assert "promoted: better on" in after["a"].reason
    assert (after["b"], after["c"]) == (served["b"], served["c"])
    assert set(weeks.challengers()) == {"b", "c"}


@pytest.mark.long
def test_who_has_grown_by_a_quarter_is_searched_for_and_its_winner_stands(weeks: Weeks) -> None:
    before = weeks.champions()
    write(weeks.data, "a", 90, 0)
    write(weeks.data, "d", 60, 9)
    (weeks.data / "c.csv").unlink()
    plan = weeks.plan()
    assert plan.changes.counts == {"unchanged": 1, "grown": 1, "new": 1, "gone": 1}
    assert set(plan.searched) == {"a", "d"}
    done = weeks.refresh()
    after = weeks.champions()
    assert (after["c"], after["b"]) == (before["c"], before["b"])  # who is gone keeps its champion
    assert (after["d"].answer, after["d"].since) == ("own", done.release.number)
    assert (after["a"].searched, after["a"].rows_at_search) == (done.release.number, 90)
    assert after["a"].configuration == before["a"].configuration
    run = weeks.releases.run_directory(str(done.release.run))
    assert after["a"].run == after["d"].run == done.release.run
    (made,) = (weeks.data.parent / "runs" / "champions" / "shops" / "runs").iterdir()  # one run for fits and searches
    assert made.samefile(run.root)
    assert sorted(RunResult(run).planned) == ["a/champion", "a/scored", "a/search", "d/search"]
    assert weeks.refresh().new is False


def test_what_a_group_costs_is_told_by_what_earlier_fits_and_trials_took(weeks: Weeks) -> None:
    write(weeks.data, "a", 66)
    write(weeks.data, "b", 90, 1)
    write(weeks.data, "d", 60, 9)
    first = weeks.plan()
    trial = pc.mean(RunResult(weeks.data.parent / "runs" / "first").best_studies()["fit_seconds"]).as_py() / 2
    assert first.work == {
        "grown": GroupWork(2, 2, pytest.approx(4 * trial)),  # no fit is known yet
        "new": GroupWork(0, 2, pytest.approx(2 * trial)),
    }
    assert "new: 1 customer (60 rows, no champion yet): 2 trials, about " in first.describe()
    done = weeks.refresh()
    write(weeks.data, "a", 70)
    studies = RunResult(weeks.releases.run_directory(str(done.release.run))).study_records
    fits = [each.fit_seconds for each in studies if each.study.endswith("/champion")]
    assert weeks.plan().work == {"grown": GroupWork(1, 0, pytest.approx(sum(fits) / len(fits)))}


def test_a_refresh_that_asks_for_something_else_than_the_one_that_was_killed_begins_a_run_of_its_own(
    weeks: Weeks, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(weeks.data, "a", 66)
    with monkeypatch.context() as patch:
        patch.setattr(Releases, "place", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            weeks.refresh()
    runs = weeks.data.parent / "runs" / "champions" / "shops" / "runs"
    (before,) = runs.iterdir()
    began = RunResult(before).term.number
    write(weeks.data, "b", 66, 1)  # more rows before the repeat
    done = weeks.refresh()
    assert done.fitted == 2
    assert {each.name for each in runs.iterdir()} == {before.name, str(done.release.run).rpartition("/")[2]}
    assert RunResult(before).term.number == began == 1
    assert weeks.refresh().new is False


def test_the_command_says_what_it_would_do_does_it_and_does_nothing_twice(weeks: Weeks) -> None:
    (weeks.data.parent / "shops.yaml").write_text(yaml.safe_dump({**FIELDS, "data": f"{weeks.data}/*.csv"}))
    write(weeks.data, "a", 66)

    def typed(*more: str) -> Result:
        storage = ("--storage", str(weeks.data.parent / "runs"))
        given = ["refresh", "shops", str(weeks.data.parent / "shops.yaml"), *storage, "--in-process", *more]
        return CliRunner().invoke(main, [*given, "--progress", "none"])

    said = typed("--plan").stdout
    assert "grown: 1 customer (6 new rows, and all of last time): 1 fit, about " in said
    assert "to fit again: 1 customer, with the champion's configuration, one fit each" in said
    done = typed("--output", "json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["release"], told["new"], told["fitted"], told["answers"]) == (2, True, 1, {"own": 3})
    assert typed().stdout == "no row is new, so nothing was done; release 2 of shops is in force\n"
    wrong = typed("--least-gain", "7")
    assert wrong.exit_code == 2
    assert "least_gain: 7 must be at least 0 and below 1" in wrong.output


def test_a_champion_that_new_rows_contradict_is_tuned_anew(weeks: Weeks) -> None:
    write(weeks.data, "a", 400, 0)
    path = weeks.data / "a.csv"
    rows = pd.read_csv(path)
    rows.loc[60:, "y"] *= -1.0  # since then everything is the other way round
    rows.to_csv(path, index=False)
    done = weeks.refresh(grown=99.0, search_every=99)
    assert [each.customer for each in done.drift] == ["a"]
    after = weeks.champions()
    assert after["a"].searched == done.release.number
    assert after["a"].drift is None  # it is tuned, so evidence begins anew
    assert after["b"].searched == 1


@pytest.mark.long
def test_a_champion_that_cannot_serve_is_replaced_without_a_test(weeks: Weeks) -> None:
    for name in ("a", "b", "c"):
        rows = pd.read_csv(weeks.data / f"{name}.csv")
        rows.rename(columns={"z": "w"}).to_csv(weeks.data / f"{name}.csv", index=False)
    before = weeks.champions()
    done = weeks.refresh()
    after = weeks.champions()
    assert {name: each.answer for name, each in after.items()} == dict.fromkeys("abc", "own")
    assert all(after[name].since == done.release.number for name in after if after[name] != before[name])
    assert after["a"].configuration is not None
    model = weeks.releases.run_directory(after["a"].run)
    assert weeks.refresh().new is False
    assert model.entries()


@pytest.mark.long
def test_an_expected_gain_is_enough_once_challengers_of_a_size_are_better_as_a_group(tmp_path: Path) -> None:
    names = ["a", "b", "c", "d"]
    weeks = Weeks.begun(tmp_path, names)
    poor = definition_of(weeks.definition, {"models": FLAT, "trials": 1})
    TuneRunner(poor).run(tmp_path / "runs" / "poor", in_process=True, progress=False)
    weeks.releases = Releases("others", tmp_path / "runs")
    promote_run(RunResult(tmp_path / "runs" / "poor"), weeks.releases)
    promote_run(RunResult(tmp_path / "runs" / "first"), weeks.releases)
    outcomes = []
    for week in range(3):
        for name in names:
            write(weeks.data, name, 70 + 8 * week, names.index(name))
        if week == 2:
            sure_of_the_group(weeks.releases)
        done = weeks.refresh(promotion="expected", grown=99.0, search_every=99)
        outcomes.append(dict(done.outcomes))
    assert outcomes == [{"stands": 4}, {"stands": 4}, {"promoted": 4}]
    assert "likely no better" in done.said_of_all


def sure_of_the_group(releases: Releases) -> None:
    """A release that has seen a thousand customers of that size be better off with their challengers."""
    release = releases.current()
    groups = groups_of(releases.table(release, GROUPS))
    (size,) = groups
    known = replace(groups[size], rows=np.array(1000), log_wealth=np.full(4, 20.0), beyond=np.zeros(4))
    tables = {**release.tables, GROUPS: groups_table({size: known})}
    releases.place(Release(release.number + 1, release.number, PROMOTE), tables)


@pytest.mark.long
def test_customers_of_keyed_files_are_compared_on_the_rows_of_a_new_file(weeks: Weeks, tmp_path: Path) -> None:
    parts = [pd.read_csv(weeks.data / f"{name}.csv").assign(shop=name) for name in ("a", "b", "c")]
    folder = tmp_path / "keyed"
    folder.mkdir()
    pd.concat(parts).to_csv(folder / "week-2.csv", index=False)
    weeks.definition = definition_of(None, {**FIELDS, "data": str(folder), "by": "shop"})
    TuneRunner(weeks.definition).run(tmp_path / "runs" / "keyed", in_process=True, progress=False)
    weeks.releases = Releases("keyed", tmp_path / "runs")
    promote_run(RunResult(tmp_path / "runs" / "keyed"), weeks.releases)
    later = pd.concat(parts).assign(x=lambda rows: rows["x"] + 0.01)
    later.to_csv(folder / "week-1.csv", index=False)  # before the other by name, so rows change their order
    assert weeks.plan().changes.counts == {"grown": 3}
    done = weeks.refresh(grown=9.0, drift_tolerance=9.0)
    assert done.notes == {}  # all have doubled
    seen = {name: LossSoFar.of_json(each.drift) for name, each in weeks.champions().items()}
    assert {name: each.rows for name, each in seen.items()} == {"a": 60, "b": 60, "c": 60}
    assert all(each.mean < 0.2 for each in seen.values())
    served = weeks.champions()["a"]
    week = pd.read_csv(weeks.data / "a.csv")[:9].assign(shop="a", x=lambda rows: rows["x"] - 0.01)
    week.rename(columns={"z": "w"}).to_csv(folder / "week-3.csv", index=False)
    done = weeks.refresh(grown=9.0, search_every=99, drift_tolerance=99.0)
    assert done.notes["a"].startswith("its new rows have no 'z', which others of its rows have")
    assert (weeks.champions()["a"].since, done.outcomes["promoted"]) == (served.since, 0)  # it can serve


def test_a_repeat_begins_its_search_with_the_same_configurations(weeks: Weeks) -> None:
    champions = weeks.champions()
    one, other = (first_tries(weeks.releases, champions, names) for names in (["b", "a", "c"], ["c", "b", "a"]))
    assert one == other
    trials = RunResult(weeks.data.parent / "runs" / "first").trial_records
    for name in "abc":
        tried = [each.config for each in trials if each.customer == name]
        assert len(one[name]) == 2
        assert all(each in tried for each in one[name])


def test_a_search_tries_the_champion_first_and_leaves_out_what_its_space_has_not(weeks: Weeks) -> None:
    write(weeks.data, "a", 90)
    weeks.definition = definition_of(weeks.definition, {"models": ["knn"], "trials": 3})
    done = weeks.refresh(promotion="never")
    records = RunResult(weeks.releases.run_directory(str(done.release.run))).trial_records
    assert {each.family for each in records} == {"knn"}
    write(weeks.data, "b", 90, 1)
    weeks.definition = definition_of(weeks.definition, {"models": ["knn", "ridge"]})
    done = weeks.refresh(promotion="never")
    records = RunResult(weeks.releases.run_directory(str(done.release.run))).trial_records
    champion = FixedConfiguration.from_json(weeks.champions()["b"].configuration or "").members[0]
    assert champion.config in [each.config for each in records if each.customer == "b"][:2]  # after the baseline
