"""`tuning compare` and `tuning tabulate`: what they print and write, also of what is unfinished or wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from click.testing import CliRunner
from compare_curves import curves
from comparisons import bowl, run

from tuning.cli.program import main
from tuning.compare import comparison_of
from tuning.compare.analysis.result import Unfinished


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def definition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A YAML file over ridge regression on two customers."""
    folder = tmp_path_factory.mktemp("cli")
    rng = __import__("numpy").random.default_rng(0)
    for name in ("north", "south"):
        x = rng.random((60, 2))
        frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": x[:, 0] * 2 + rng.normal(0, 0.1, 60)})
        frame.to_csv(folder / f"{name}.csv", index=False)
    plain = {
        "data": "*.csv",
        "target": "y",
        "task": "regression",
        "search_space": {
            "model": {"type": "constant", "value": "ridge"},
            "alpha": {"type": "float", "low": 0.001, "high": 1000, "log": True},
        },
        "trials": 4,
        "storage": "runs",
        "mlflow": False,
        "slots": 1,
    }
    (folder / "search.yaml").write_text(yaml.safe_dump(plain))
    return folder / "search.yaml"


def test_the_command_compares_models(definition: Path) -> None:
    folder = definition.parent
    answer = invoke(
        *("compare", definition, "--algorithms", "random,optuna", "--seeds", "2", "--run-dir", folder / "run"),
        *("--output", "json", "--progress=none", "--in-process", "--html", folder / "out.html"),
    )
    assert answer.exit_code == 0, answer.output
    plain = json.loads(answer.stdout)
    assert [row["method"] for row in plain["methods"]] in (["random", "optuna"], ["optuna", "random"])
    assert plain["tasks"] == 2
    assert plain["hold_out"]["ranks"].keys() == {"random", "optuna"}
    assert "too_few" in [note["code"] for note in plain["notes"]]
    assert (folder / "out.html").stat().st_size > 20_000
    again = invoke("compare", "--from-run", folder / "run", "--baseline", "random", "--output", "json")
    assert json.loads(again.stdout)["reference"] == "random"
    assert json.loads(again.stdout)["methods"] == sorted(
        json.loads(again.stdout)["methods"], key=lambda row: row["rank"]
    )


def test_running_and_resuming_a_comparison_print_its_report(definition: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    compared = ("--set", "compare.algorithms=[random, optuna]", "--set", "compare.seeds=2")
    first = invoke("run", definition, *compared, "--run-dir", folder, "--in-process", "--progress=none")
    (folder / "comparison.html").unlink()
    again = invoke("resume", folder, "--progress=none")
    for answer in (first, again):
        assert answer.exit_code == 0, answer.output
        assert answer.stdout.splitlines()[0] == comparison_of(str(folder)).sentence
        named = [line.split()[-1] for line in answer.stderr.splitlines() if str(folder) in line]
        assert {Path(path).name for path in named} == {"comparison.html", "curves.parquet", "records"}
    assert all(Path(path).exists() for path in named)
    assert not (folder / "leaderboard.csv").exists()
    plain = json.loads(invoke("resume", folder, "--progress=none", "--output", "json").stdout)
    assert {row["method"] for row in plain["methods"]} == {"random", "optuna"}
    board = invoke("leaderboard", folder)
    assert board.exit_code == 2
    assert f"tuning compare --from-run {folder}" in board.output


def test_the_command_tabulates_and_compares_on_the_table(definition: Path, tmp_path: Path) -> None:
    table = tmp_path / "grid.parquet"
    answer = invoke(
        *("tabulate", definition, "--levels", "6", "--to", table, "--run-dir", tmp_path / "run", "--in-process"),
        "--progress=none",
    )
    assert answer.exit_code == 0, answer.output
    assert "6 configurations of 2 customers" in answer.stderr
    found = invoke("compare", "--from-table", table, "--algorithms", "random,optuna", "--seeds", "3", "--trials", "4")
    assert found.exit_code == 0, found.output
    assert "2 tasks x 3 seeds" in found.stdout


def test_the_command_analyses_curves_from_elsewhere(tmp_path: Path) -> None:
    curves({"random": 0.0, "optuna": 0.9}).to_csv(tmp_path / "curves.csv", index=False)
    answer = invoke("compare", "--from-curves", tmp_path / "curves.csv", "--html", tmp_path / "page.html")
    assert answer.exit_code == 0, answer.output
    assert answer.stdout.startswith("Use optuna: random is worse on")
    assert (tmp_path / "page.html").exists()
    csv = invoke("compare", "--from-curves", tmp_path / "curves.csv", "--output", "csv")
    assert csv.stdout.splitlines()[0].startswith("method,rank,regret")
    assert csv.stdout.splitlines()[1].startswith("optuna,1")


def stopped_in_the_middle(tmp_path: Path, calls: int) -> Path:
    """A comparison that was interrupted when so many trials had run; studies take six each."""
    left = iter(range(calls))

    def interrupted(config: dict[str, float], data: pd.DataFrame) -> Iterator[float]:
        if next(left, None) is None:
            raise KeyboardInterrupt
        yield from bowl(config, data)

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, objective=interrupted)
    return tmp_path / "run"


def test_of_an_unfinished_comparison_whole_repetitions_count_and_nothing_is_a_failure(tmp_path: Path) -> None:
    # Eight searches are done: both repetitions of c0, and two algorithms of the first repetition of c1.
    folder = stopped_in_the_middle(tmp_path, 50)
    found = comparison_of(str(folder))
    assert found.unfinished == Unfinished(searches=10, planned=18, unpaired=2)
    assert found.final.tasks == ("c0",)
    assert found.curves.frame.groupby("method")["seed"].nunique().tolist() == [2, 2, 2]
    assert (found.failures.tasks, found.failures.seeds, found.failures.trials) == ({}, {}, {})
    answer = invoke("compare", "--from-run", folder)
    assert answer.exit_code == 3
    assert answer.stdout.startswith(
        "NOT FINAL: 10 of 18 searches have not finished; they are left out, and 2 finished ones that they would be "
        "compared with. "
    )
    plain = json.loads(invoke("compare", "--from-run", folder, "--output", "json").stdout)
    assert plain["unfinished"] == {"searches": 10, "planned": 18, "unpaired": 2}
    assert plain["recommendation"]["sentence"] == found.sentence


def test_a_comparison_without_a_whole_repetition_says_how_to_go_on(tmp_path: Path) -> None:
    folder = stopped_in_the_middle(tmp_path, 13)
    answer = invoke("compare", "--from-run", folder)
    assert answer.exit_code == 6
    assert f"Go on with: tuning resume {folder}" in answer.output


def test_wrong_commands_end_with_a_sentence(definition: Path, tmp_path: Path) -> None:
    curves({"a": 0.0}).to_csv(tmp_path / "one.csv", index=False)
    (tmp_path / "empty.csv").write_text("method,task\n")
    given, table = tmp_path / "one.csv", tmp_path / "table.parquet"
    for arguments, code, message in (
        (["compare"], 2, "Give one of DEFINITION"),
        (["compare", definition, "--from-curves", tmp_path / "one.csv"], 2, "not 2 of them"),
        (["compare", definition], 2, "no algorithms to compare"),
        (["compare", definition, "--algorithms", "random"], 2, "two algorithms or more"),
        (["compare", "--from-curves", tmp_path / "one.csv"], 2, "one algorithm, 'a', and nothing to compare it with"),
        (["compare", "--from-curves", tmp_path / "empty.csv"], 2, "no column seed, trial, score"),
        (["compare", "--from-table", tmp_path / "one.csv"], 2, "no algorithms to compare"),
        (["compare", "--from-curves", tmp_path / "one.csv", "--trials", "9"], 2, "--trials has no effect"),
        (["compare", "--from-table", tmp_path / "one.csv", "--resume"], 2, "--resume has no effect"),
        (["compare", "--from-table", tmp_path / "one.csv", "--set", "trials=9"], 2, "--set has no effect"),
        (["compare", definition, "--algorithms", "random,optuna", "--mode", "min"], 2, "--mode has no effect here"),
        (["compare", "--from-run", tmp_path], 6, "not a run directory"),
        (["tabulate", definition, "--to", tmp_path / "x.parquet", "--limit", "3"], 2, "more than the limit"),
        (["tabulate", definition, "--to", table, "--data", table], 2, "is read here, and would be overwritten"),
        (["compare", "--from-curves", given, "--html", given], 2, "is read here, and would be overwritten"),
    ):
        answer = invoke(*arguments)
        assert answer.exit_code == code, (arguments, answer.output)
        assert message in answer.output, arguments
        assert "Traceback" not in answer.output
