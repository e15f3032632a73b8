"""Runs under constraints that no file can bring back: functions of a script, and lambdas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from search_spaces import Float, Int, SearchSpace
from tuning import RunResult, TuneRunner
from tuning.cli.program import main
from tuning.errors import RunError


def total(config: dict[str, Any]) -> float:
    return float(config["a"] + config["b"])


def runner(trials: int, other_than: int = 3) -> TuneRunner:
    space = SearchSpace(
        [Int("a", 1, 20, default=2), Float("b", 0, 10, default=1)],
        constraints=[lambda config: total(config) <= 10, lambda config: config["a"] != other_than],
    )
    return TuneRunner(
        objective=total, search_space=space, metric="total", mode="max", trials=trials, algorithm="random",
        scheduler="fifo", mlflow=False, report=False,
    )  # fmt: skip


def test_a_run_under_a_lambda_ends_is_shown_and_goes_on(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = str(tmp_path / "run")
    first = runner(3).run(run, progress=False, in_process=True).trials()
    assert json.loads((tmp_path / "run" / "outcome.json").read_text())["outcome"] == "complete"
    for command in ("leaderboard", "show"):
        shown = CliRunner().invoke(main, [command, run])
        assert (shown.exit_code, "a=" in shown.output) == (0, True), shown.output

    both = runner(7).run(run, progress=False, in_process=True, resume=True).trials()
    assert both["config.b"].tolist()[:3] == first["config.b"].tolist()
    assert (both["state"] == "finished").all()
    assert len(both) == 7
    assert (both["score"] <= 10).all()
    assert RunResult(run).best_config()["a"] != 3
    with pytest.raises(RunError, match=r"search_space: .* there, .* here"):
        runner(9, other_than=4).run(run, progress=False, in_process=True, resume=True)
    assert "could not be written" not in capfd.readouterr().err
