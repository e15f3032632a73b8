"""How long a challenger stands, when another one takes its place, and when there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shop_weeks import ShopWeeks, rows

from tuning import TuneRunner
from tuning.champions.champion import Challenger
from tuning.champions.comparison import RowComparison
from tuning.definition.given import definition_of

BEST, FAIR, POOR = 1.0, 100.0, 1000.0  # how much a ridge is held back


def ridge(alpha: float) -> dict[str, object]:
    space = {"alpha": {"type": "constant", "value": alpha}}
    return {"models": [{"estimator": "ridge", "search_space": space}], "trials": 1}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> dict[float, ShopWeeks]:
    """Champions that are poor, and such that are good; to be copied."""
    return {each: ShopWeeks.begun(tmp_path_factory.mktemp("shops"), ["a", "b"], **ridge(each)) for each in (BEST, POOR)}


def standing(weeks: ShopWeeks) -> tuple[int, int]:
    """Since when the challenger of `a` stands, and on how many rows it was compared."""
    challenger: Challenger = weeks.state()[1]["a"]
    text = challenger.comparison
    return challenger.since, 0 if text is None else RowComparison.of_json(text).rows


@pytest.mark.long
def test_another_one_takes_its_place_after_its_weeks_and_evidence_begins_anew(
    begun: dict[float, ShopWeeks], tmp_path: Path
) -> None:
    weeks = begun[POOR].copied(tmp_path)
    weeks.promote("fair", **ridge(FAIR))
    weeks = ShopWeeks(tmp_path, **ridge(BEST))
    found = []
    for count in (63, 66, 69, 72):
        weeks.write("a", rows(0, count))
        weeks.refresh(stand=2, grown=0.0, search_every=99)
        found.append(standing(weeks))
    assert found == [(2, 3), (4, 0), (4, 3), (4, 6)]  # what a search finds again stands on with its evidence


@pytest.mark.long
def test_a_new_challenger_is_compared_on_the_hold_out_of_its_search_until_new_rows_come(
    begun: dict[float, ShopWeeks], tmp_path: Path
) -> None:
    begun[POOR].copied(tmp_path)
    weeks = ShopWeeks(tmp_path, **ridge(BEST))
    weeks.write("a", rows(0, 80))
    done = weeks.refresh(grown=0.0)
    (said,) = decisions(weeks)
    assert done.decisions == ()
    assert (said["customer"], said["outcome"], said["compared_on"], said["rows"]) == ("a", "stands", "hold-out", 16)
    alone = [
        TuneRunner(definition_of(weeks.definition, {**ridge(each), "customers": ["a"]})).run(
            tmp_path / f"{each}", in_process=True, progress=False
        )
        for each in (POOR, BEST)
    ]
    errors = [result.leaderboard()["test_score"][0] for result in alone]
    assert [said["champion_loss"], said["challenger_loss"]] == pytest.approx([error**2 for error in errors])
    assert said["e_value"] is None  # it is no evidence: a later search may choose by these rows
    assert standing(weeks) == (2, 0)
    weeks.write("a", rows(0, 84))
    weeks.refresh(grown=9.0, search_every=99)
    (said,) = decisions(weeks)
    assert (said["compared_on"], said["rows"]) == ("new rows", 4)


def decisions(weeks: ShopWeeks) -> list[dict[str, Any]]:
    table = weeks.releases.table(weeks.releases.current(), "decisions")
    return [] if table is None else table.to_pylist()


def test_a_search_that_finds_the_champion_again_makes_no_challenger(
    begun: dict[float, ShopWeeks], tmp_path: Path
) -> None:
    weeks = begun[POOR].copied(tmp_path)
    weeks.write("a", rows(0, 63))
    done = weeks.refresh(grown=0.0)
    assert weeks.state()[0]["a"].searched == done.release.number == 2
    assert weeks.state()[1] == {}


@pytest.mark.long
def test_who_is_surely_worse_is_beaten_and_stands_no_more(begun: dict[float, ShopWeeks], tmp_path: Path) -> None:
    weeks = begun[BEST].copied(tmp_path)
    weeks.promote("poor", **ridge(POOR))
    weeks.write("a", rows(0, 210))
    weeks.refresh(grown=99.0, search_every=99)
    weeks.write("a", rows(0, 560))
    served = weeks.state()[0]["a"]
    done = weeks.refresh(grown=99.0, search_every=99)
    assert done.outcomes["beaten"] == 1
    assert "surely worse on 500 new rows" in done.decisions[0].reason
    assert [*weeks.state()[1]] == ["b"]
    assert weeks.state()[0]["a"].configuration == served.configuration


def test_a_champion_that_was_changed_by_hand_is_found_anew_and_nobody_else(
    begun: dict[float, ShopWeeks], tmp_path: Path
) -> None:
    weeks = begun[BEST].copied(tmp_path)
    before = weeks.state()[0]
    file = next((tmp_path / "runs" / "first" / str(before["a"].model_path)).glob("*.skops"))
    file.write_bytes(file.read_bytes()[:-1])
    weeks.write("a", rows(0, 63))
    done = weeks.refresh()
    after = weeks.state()[0]
    assert "the champion cannot serve: " in done.notes["a"]
    assert "is damaged: its SHA-256 is not the recorded one" in done.notes["a"]
    assert (after["a"].since, after["a"].searched, after["b"]) == (2, 2, before["b"])
