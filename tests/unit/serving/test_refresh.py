"""A refresh in this process: what becomes of champions as rows come."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import Result
from commands import tuning
from shop_weeks import NAME, ShopWeeks, rows

from tuning import TuneRunner
from tuning.definition.given import definition_of
from tuning.notes import ServingCode
from tuning.runs.results import RunResult
from tuning.serving.models import ReleaseModels
from tuning.serving.release import REFRESH
from tuning.serving.releases import Releases
from tuning.serving.report import champions_page

BEST, POOR = 1.0, 1000.0  # how much a ridge is held back


def ridge(alpha: float) -> dict[str, object]:
    space = {"alpha": {"type": "constant", "value": alpha}}
    return {"models": [{"estimator": "ridge", "search_space": space}], "trials": 1}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> ShopWeeks:
    """With a first release; to be copied."""
    return ShopWeeks.begun(tmp_path_factory.mktemp("first"), ["a", "b", "c"])


@pytest.fixture
def weeks(first: ShopWeeks, tmp_path: Path) -> ShopWeeks:
    return first.copied(tmp_path)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> dict[float, ShopWeeks]:
    """Champions that are poor, and such that are good; to be copied."""
    return {each: ShopWeeks.begun(tmp_path_factory.mktemp("shops"), ["a", "b"], **ridge(each)) for each in (BEST, POOR)}


def test_rows_that_came_are_learned_with_one_fit_and_unchanged_customers_are_left_alone(weeks: ShopWeeks) -> None:
    before = weeks.state()
    weeks.write("a", rows(0, 66))
    plan = weeks.plan()
    assert (plan.changes.unchanged, plan.changes.changed) == (2, ("a",))
    assert (plan.fitted, plan.searched) == (["a"], [])
    done = weeks.refresh()
    assert (done.new, done.release.why, done.notes) == (True, REFRESH, {})
    after = weeks.state()
    assert (after["b"], after["c"]) == (before["b"], before["c"])
    assert (after["a"].configuration, after["a"].rows, after["a"].since) == (before["a"].configuration, 66, 1)
    assert after["a"].model_sha256 != before["a"].model_sha256
    again = weeks.refresh()
    assert (again.new, again.release.number) == (False, done.release.number)


def test_a_file_that_was_only_touched_is_no_change(weeks: ShopWeeks) -> None:
    path = weeks.data / "a.csv"
    path.write_bytes(path.read_bytes())
    (weeks.data / "b.csv").rename(weeks.data / "old.csv")
    (weeks.data / "old.csv").rename(weeks.data / "b.csv")
    assert weeks.plan().changes.unchanged == 3


@pytest.mark.long
def test_who_has_grown_by_a_quarter_or_is_new_is_searched_for(weeks: ShopWeeks) -> None:
    before = weeks.state()
    weeks.write("a", rows(0, 90))
    weeks.write("d", rows(9, 60))
    (weeks.data / "c.csv").unlink()
    changes = weeks.plan().changes
    assert (changes.unchanged, changes.changed, changes.new, changes.gone) == (1, ("a",), ("d",), ("c",))
    assert set(weeks.plan().searched) == {"a", "d"}
    done = weeks.refresh()
    after = weeks.state()
    assert (after["c"], after["b"]) == (before["c"], before["b"])  # who is gone keeps its champion
    assert (after["d"].answer, after["d"].since) == ("own", done.release.number)
    assert (after["a"].searched, after["a"].searched_size) == (done.release.number, after["a"].size)
    assert after["a"].run == after["d"].run == done.release.run
    (made,) = (weeks.folder / "runs" / "champions" / NAME / "runs").iterdir()  # one run for fits and searches
    run = weeks.releases.run_directory(str(done.release.run))
    assert made.samefile(run.root)
    assert sorted(RunResult(run).planned) == ["a/champion", "a/scored", "a/search", "d/search"]
    assert weeks.refresh().new is False


@pytest.mark.parametrize(
    ("before", "now", "options", "promoted"),
    [
        (POOR, BEST, {}, True),
        (BEST, POOR, {}, False),
        (BEST, POOR, {"promotion": "always"}, True),
        (POOR, BEST, {"promotion": "never"}, False),
        (POOR, BEST, {"min_gain": 99.0}, False),
        (BEST, BEST, {"promotion": "always"}, False),  # the search finds what serves already
    ],
)
def test_the_rule_decides_whether_the_winner_of_a_search_serves(
    begun: dict[float, ShopWeeks], tmp_path: Path, before: float, now: float, options: dict[str, object], promoted: bool
) -> None:
    begun[before].copied(tmp_path)
    weeks = ShopWeeks(tmp_path, **ridge(now))
    served = weeks.state()["a"]
    weeks.write("a", rows(0, 80))
    done, champion = weeks.refresh(grown=0.0, **options), weeks.state()["a"]
    assert list(done.promoted) == ["a"] * promoted
    assert (champion.configuration == served.configuration) is not promoted
    assert (champion.since, champion.rows) == (2 if promoted else 1, 80)
    model = ReleaseModels.current(NAME, str(tmp_path / "runs")).of("a").model
    assert np.isfinite(model.predict(rows(0, 90)[80:])).all()


@pytest.mark.long
def test_both_are_compared_on_the_hold_out_after_learning_the_same_rows(
    begun: dict[float, ShopWeeks], tmp_path: Path
) -> None:
    begun[POOR].copied(tmp_path)
    weeks = ShopWeeks(tmp_path, **ridge(BEST))
    weeks.write("a", rows(0, 80))
    weeks.refresh(grown=0.0)
    alone = [
        TuneRunner(definition_of(weeks.definition, {**ridge(each), "customers": ["a"]})).run(
            tmp_path / f"{each}", in_process=True, progress=False
        )
        for each in (BEST, POOR)
    ]
    errors = [result.leaderboard()["test_score"][0] for result in alone]
    champion = weeks.state()["a"]
    assert [champion.score, champion.other_score] == pytest.approx(errors)
    (why,) = [each for each in champion.reason if each.code is ServingCode.BETTER]
    assert [why.values["score"], why.values["other_score"]] == pytest.approx(errors)
    shown = ["serving", NAME, "--storage", tmp_path / "runs"]
    first, last = json.loads(tuning(*shown, "--history", "a", "--output", "json").stdout)
    assert (first["release"], last["release"], last["other_score"]) == (1, 2, pytest.approx(errors[1]))
    page = champions_page(weeks.releases)
    assert "Another configuration serves since this release" in page
    assert f"tuning rollback {NAME} --storage" in page


def test_a_refresh_that_asks_for_something_else_than_the_one_that_was_killed_begins_a_run_of_its_own(
    weeks: ShopWeeks, monkeypatch: pytest.MonkeyPatch
) -> None:
    weeks.write("a", rows(0, 66))
    with monkeypatch.context() as patch:
        patch.setattr(Releases, "place", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            weeks.refresh()
    runs = weeks.folder / "runs" / "champions" / NAME / "runs"
    (before,) = runs.iterdir()
    weeks.write("b", rows(1, 66))  # more rows before the repeat
    done = weeks.refresh()
    assert list(done.fitted) == ["a", "b"]
    assert {each.name for each in runs.iterdir()} == {before.name, str(done.release.run).rpartition("/")[2]}
    assert RunResult(before).term.number == 1
    assert weeks.refresh().new is False


def test_the_command_says_what_it_would_do_does_it_and_does_nothing_twice(weeks: ShopWeeks) -> None:
    file = weeks.folder / "shops.yaml"
    file.write_text(yaml.safe_dump({**weeks.fields, "data": f"{weeks.data}/*.csv"}))
    weeks.write("a", rows(0, 66))

    def typed(*more: str) -> Result:
        storage = ("--storage", weeks.folder / "runs")
        return tuning("refresh", NAME, file, *storage, "--in-process", "--progress", "none", *more)

    assert typed("--plan").stdout.splitlines() == [
        "release 1 is in force",
        "unchanged: 2 customers",
        "changed: 1 customer",
        "to fit again: 1 customer, with the configuration that serves, one fit each",
        "to search for: 0 customers, 2 trials each",
    ]
    done = typed("--output", "json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["release"], told["new"], told["fitted"], told["answers"]) == (2, True, 1, {"own": 3})
    assert typed().stdout == f"no row is new, so nothing was done; release 2 of {NAME} is in force\n"
    wrong = typed("--min-gain", "-7")
    assert wrong.exit_code == 2
    assert "--min-gain': -7.0 is not in the range 0.0<=x<100.0" in wrong.output


@pytest.mark.long
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_customers_of_a_table_are_known_by_their_own_rows(weeks: ShopWeeks, tmp_path: Path, form: str) -> None:
    parts = {name: pd.read_csv(weeks.data / f"{name}.csv").assign(shop=name) for name in ("a", "b", "c")}
    folder = tmp_path / "keyed"
    folder.mkdir()

    def write() -> None:
        whole = pd.concat(parts.values(), ignore_index=True)
        whole.to_csv(folder / "all.csv", index=False) if form == "csv" else whole.to_parquet(folder / "all.parquet")

    write()
    fields = {**weeks.fields, "data": str(folder), "by": "shop"}
    keyed = ShopWeeks(tmp_path / "keyed-champions", **fields)
    keyed.promote("first")
    before = keyed.state()
    assert keyed.refresh().new is False
    parts["b"] = parts["b"].assign(x=lambda frame: frame["x"] + 0.01)
    write()
    done = keyed.refresh()
    assert list(done.fitted) == ["b"]
    assert {name: keyed.state()[name] for name in "ac"} == {name: before[name] for name in "ac"}
    assert keyed.refresh().new is False
