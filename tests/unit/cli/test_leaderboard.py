"""The leaderboard in a terminal: as long and as wide as its window."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builders import tuner_of
from commands import tuning

from tuning import RunResult, TuneRunner
from tuning.cli.output import brief_model, lines, show_leaderboard
from tuning.cli.program import main


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    frame = pd.DataFrame({"shop": [f"s{number:02d}" for number in range(30)]})
    run = tmp_path_factory.mktemp("leaderboard") / "run"
    return tuner_of(lambda config: 1.0, data=frame, by="shop", trials=1).run(str(run), progress=False, in_process=True)


def printed(
    result: RunResult,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    window: tuple[int, int],
    sort: str = "customer",
) -> list[str]:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: window != (0, 0))
    monkeypatch.setattr("shutil.get_terminal_size", lambda fallback: os.terminal_size(window))
    show_leaderboard(result, "table", sort)
    return capsys.readouterr().out.splitlines()


def test_a_window_shows_the_first_and_the_last_rows_and_how_many_are_between(
    result: RunResult, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = printed(result, capsys, monkeypatch, (100, 14))
    assert len(shown) < 14
    assert [line.split()[0] for line in shown[2:]] == [
        "s00",
        "s01",
        "s02",
        "s03",
        "s04",
        "s05",
        "…",
        "s27",
        "s28",
        "s29",
    ]
    assert shown[8] == f"… and 21 more between: tuning leaderboard {result.directory.shown} | less -S"
    assert max(map(len, shown[:8])) <= 100


@pytest.mark.parametrize("window", [(100, 40), (0, 0)], ids=["a high window", "no terminal"])
def test_where_all_rows_have_room_all_are_shown(
    result: RunResult, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, window: tuple[int, int]
) -> None:
    shown = printed(result, capsys, monkeypatch, window)
    assert [line.split()[0] for line in shown[2:]] == [f"s{number:02d}" for number in range(30)]


@pytest.mark.parametrize("sort", ["seconds", "trials", "notes"])
def test_what_it_is_sorted_by_is_seen_however_narrow_the_window_is(
    sort: str, result: RunResult, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = printed(result, capsys, monkeypatch, (70, 14), sort)
    assert sort in shown[1].split()
    assert max(map(len, shown[:8])) <= 70
    assert shown[8].endswith(f"--sort {sort} | less -S")


def test_a_column_that_there_is_not_is_refused_with_those_that_there_are(result: RunResult) -> None:
    answer = tuning("leaderboard", result.directory.root, "--sort", "tst_score")
    assert answer.exit_code == 2
    assert "'tst_score' is no column. Did you mean 'test_score'? There are customer, status, reason" in answer.stderr
    header = tuning("leaderboard", result.directory.root).stdout.splitlines()[1]
    for column in header.replace(" or ", "  ").split():
        assert tuning("leaderboard", result.directory.root, "--sort", column).exit_code == 0


def test_a_narrow_window_keeps_who_what_and_how_good(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"shop": np.repeat(["a shop with a long name", "b"], 40), "x": rng.normal(size=80)})
    frame["y"] = 2 * frame["x"] + rng.normal(size=80)
    few = pd.DataFrame({"shop": ["customer-few"], "x": [0.5], "y": [1.0]})
    frame = pd.concat([frame, few])
    runner = TuneRunner(data=frame, by="shop", target="y", metric="mae", search_space="ridge", trials=3, mlflow=False)
    made = runner.run(tmp_path / "run", in_process=True, progress=False)
    for width in (60, 80):
        head, names, *rows = lines(made.board(), width)
        assert names.split()[:5] == ["customer", "model", "verdict", "test_rows", "test_score"]
        assert max(map(len, [head, names, *rows])) <= width
        assert rows[2].startswith("customer-few"), "ids are cut after parameters"
        assert "1 row with a target, fewer than" in rows[2], "a reason has the room of empty columns"


@pytest.mark.parametrize(
    ("model", "room", "said"),
    [
        ("ensemble of 4 (catboost, svm, knn, ridge)", 12, "catboost +3"),
        ("ensemble of 3 (hist_gradient_boosting, …", 12, "hist_gra… +2"),
        ("ensemble of 2 (svm, ridge)", 30, "ensemble of 2 (svm, ridge)"),
        ("hist_gradient_boosting", 12, "hist_gradient_boosting"),
    ],
)
def test_an_ensemble_without_room_is_its_best_member_and_the_number_of_the_others(
    model: str, room: int, said: str
) -> None:
    assert brief_model(model, room) == said


def test_one_customer_fits_the_window_and_comes_page_by_page(
    result: RunResult, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGER", "cat")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("shutil.get_terminal_size", lambda fallback: os.terminal_size((50, 6)))
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    turned: list[str] = []
    monkeypatch.setattr("click.echo_via_pager", turned.extend)
    main(["show", result.directory.root, "s07"], standalone_mode=False)
    assert "s07" in turned[0]
    assert max(len(line.rstrip("\n")) for line in turned) <= 50
