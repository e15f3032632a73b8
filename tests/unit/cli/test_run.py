"""`tuning run`, `resume` and `leaderboard`, and what is asked before hours of work."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from commands import FAST, tuning

from tuning import RunResult
from tuning.cli.output import show_finished


@pytest.mark.long
def test_exit_codes_and_outputs_of_a_run(definition: Path, finished: Path, tmp_path: Path) -> None:
    board = tuning("leaderboard", finished, "--output", "csv")
    assert board.exit_code == 0
    assert board.stdout.splitlines()[0].startswith("customer,status,reason")
    assert len(json.loads(tuning("leaderboard", finished, "--output", "json").stdout)) == 3
    one = tuning("run", definition, "--run-dir", tmp_path / "one", "--customer", "acme", "--output", "json", *FAST)
    assert one.exit_code == 0
    counts = json.loads(one.stdout)
    assert (counts["customers"], counts["succeeded"], counts["trials"]) == (1, 1, 2)
    assert sum(counts["verdicts"].values()) == 1
    none = tuning(
        "run", definition, "--run-dir", tmp_path / "none", "--customer", "tiny", "--set", "task=binary", *FAST
    )
    assert none.exit_code == 4
    again = tuning("run", definition, "--run-dir", finished, *FAST)
    assert again.exit_code == 6
    assert "already holds a run" in again.stderr
    assert tuning("leaderboard", tmp_path).exit_code == 6
    assert tuning("run", tmp_path / "nothing.yaml").exit_code == 2


def test_a_run_ends_with_whose_models_to_use(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_finished(RunResult(str(finished)), "table")
    shown = capsys.readouterr()
    _, verdict, typical, *_, reason, _ = shown.err.splitlines()
    assert verdict.startswith("2 of 3 customers have a model: use 1, 1 undecided")
    assert typical.startswith("Typical ")
    assert "; gain over the baseline, the first model tried: " in typical
    assert reason.startswith("tiny: ")
    assert [line.split()[0] for line in shown.out.splitlines()[1:]] == ["customer", "acme", "beta"]
    assert max(map(len, shown.out.splitlines())) <= 80


def test_a_run_that_is_there_is_resumed_by_the_command_that_is_said(definition: Path, finished: Path) -> None:
    answer = tuning("run", definition, "--run-dir", finished, *FAST)
    assert answer.exit_code == 6
    assert f"already holds a run. Resume it with tuning resume {finished}, or choose" in answer.stderr
    again = tuning("resume", finished, "--in-process", "--progress=none", "--output", "json")
    assert again.exit_code == 3
    assert json.loads(again.stdout.splitlines()[-1])["succeeded"] == 2


def test_an_objective_may_be_in_a_file_beside_the_definition(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def loss(config):\n    return config['x'] ** 2\n")
    space = "search_space: {x: {type: float, low: -1, high: 1}}"
    (tmp_path / "d.yaml").write_text(
        f"objective: mine.py:loss\n{space}\nmetric: loss\nmode: min\ntrials: 3\nmlflow: off\n"
    )
    answer = tuning("run", tmp_path / "d.yaml", "--run-dir", tmp_path / "run", "--in-process", "--progress=none")
    assert answer.exit_code == 0, answer.output
    (tmp_path / "mine.py").unlink()
    assert tuning("leaderboard", tmp_path / "run").exit_code == 0
    gone = tuning("plan", tmp_path / "d.yaml")
    assert (gone.exit_code, "mine.py:loss': the file cannot be read" in gone.stderr) == (2, True)


@pytest.mark.long
def test_users_code_that_exits_does_not_pass_for_success(customers: Path, tmp_path: Path) -> None:
    (tmp_path / "d.yaml").write_text(f"data: {customers}\ntarget: churned\nmodels: ['sys:exit']\n")
    for command in ("plan", "validate", "run"):
        answer = tuning(command, tmp_path / "d.yaml")
        assert answer.exit_code == 2
        assert "models: 'exit' cannot be built: SystemExit" in answer.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("ends", ["sys.exit()", "os._exit(0)"])
def test_a_model_that_exits_in_its_last_fit_ends_its_study_only(customers: Path, tmp_path: Path, ends: str) -> None:
    """Trials fit two thirds of the rows that the winner is fitted on. In a fork, as it would end this process, too."""
    (tmp_path / "mine.py").write_text(
        "import os, sys\nfrom sklearn.dummy import DummyClassifier\n\nclass Ends(DummyClassifier):\n"
        "    def fit(self, X, y, sample_weight=None):\n"
        f"        return {ends} if len(X) > 80 else super().fit(X, y, sample_weight)\n"
    )
    (tmp_path / "d.yaml").write_text(
        f"data: {customers}\ntarget: churned\nmodels: [mine.py:Ends]\nsave_models: false\nmlflow: off\n"
    )
    words = ("run", tmp_path / "d.yaml", "--run-dir", tmp_path / "run", "--progress=none", "--in-process")
    if not (fork := os.fork()):
        code = 1
        try:
            code = (answer := tuning(*words)).exit_code
            (tmp_path / "said").write_text(answer.output)
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]) == 4
    assert "SystemExit" in (tmp_path / "said").read_text()
    rows = json.loads(tuning("leaderboard", tmp_path / "run", "--output", "json").stdout.splitlines()[-1])
    assert (rows[0]["status"], rows[0]["verdict"]) == ("no_model", None)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("tabulate", "--to", "grid.csv"), "'grid.csv': a table is written as .parquet"),
        (("tabulate", "--to", "."), "a table is written as .parquet"),
        (("tabulate", "--to", "d.yaml/grid.parquet"), "--to: 'd.yaml/grid.parquet' cannot be written"),
        (
            ("compare", "--algorithms", "random,sobol", "--html", "d.yaml/page.html"),
            "--html: 'd.yaml/page.html' cannot be written",
        ),
    ],
)
def test_where_results_go_is_asked_before_hours_of_work(
    command: tuple[str, ...], message: str, definition: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.yaml").write_text(definition.read_text())
    answer = tuning(
        command[0], definition, *command[1:], "--run-dir", tmp_path / "run", "--progress=none", "--in-process"
    )
    assert (answer.exit_code, message in answer.stderr) == (2, True), answer.stderr
    assert not (tmp_path / "run").exists()
