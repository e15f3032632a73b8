"""A hyperparameter's value is shown as it is: 1.0 is not 1 (in scikit-learn all features, or one), and None is None."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from search_spaces import Choice, SearchSpace
from tuning import RunResult, TuneRunner
from tuning.basics.wording import params_text, setting_text
from tuning.cli.program import main
from tuning.tracking.mlflow_names import TrackedSearch
from tuning.tracking.tracked_runs import RecordRuns

VALUES: list[Any] = ["sqrt", None, 1, 1.0, 0.5, 2.0, 0, 100.0, [1, 1.0], {"a": None}]
SHOWN = ["sqrt", "None", "1", "1.0", "0.5", "2.0", "0", "100.0", "[1, 1.0]", "{'a': None}"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """A customer per value, who has it as the best one."""
    rows = pd.concat([pd.DataFrame({"shop": f"{number:02}", "n": [number]}) for number in range(len(VALUES))])
    runner = TuneRunner(
        objective=lambda config, data: float(repr(config["x"]) == repr(VALUES[int(data["n"].iloc[0])])),
        data=rows, by="shop", report=True, search_space=SearchSpace([Choice("x", VALUES)]), metric="score", mode="max",
        algorithm="grid", trials=len(VALUES), mlflow=False,
    )  # fmt: skip
    return runner.run(str(tmp_path_factory.mktemp("settings") / "run"), progress=False, in_process=True)


def typed(*words: str) -> str:
    answer = CliRunner().invoke(main, [*words])
    assert answer.exit_code == 0, answer.output
    return answer.stdout


@pytest.mark.long
@pytest.mark.parametrize("number", range(len(VALUES)), ids=SHOWN)
def test_a_winner_is_shown_as_it_is(run: RunResult, number: int) -> None:
    value, shown, name = VALUES[number], SHOWN[number], f"{number:02}"
    found = run.customer(name)
    assert repr(run.best_config(name)) == repr({"x": value})
    assert dict(found.facts())["x"] == shown
    assert [*run.board()][number]["params"] == {"x": value}
    assert repr(found.trials()["config.x"].tolist()) == repr(VALUES)
    assert f"x={shown}" in typed("leaderboard", run.directory.root).splitlines()[number + 2]
    table = typed("show", run.directory.root, name)
    assert [line.split(maxsplit=1)[1] for line in table.splitlines() if line.startswith("x ")] == [shown]
    assert repr(json.loads(typed("show", run.directory.root, name, "--output", "json"))["params"]) == repr({"x": value})
    (study,) = [record for record in run.study_records if record.customer == name]
    params = RecordRuns(TrackedSearch("a", "b")).of_study(study).params
    assert params.get("x") == (None if isinstance(value, dict) else shown)  # that of a dict is `x.a`


@pytest.mark.long
def test_the_report_and_the_csv_hold_values_as_they_are(run: RunResult) -> None:
    page = Path(run.directory.root, "report.html").read_text()
    texts = [json.dumps({"x": value}, separators=(",", ":")) for value in VALUES]
    assert all(json.dumps(text) in page for text in texts)
    file = pd.read_csv(Path(run.directory.root, "leaderboard.csv"))
    assert file["params"].tolist() == texts


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"), (-1.0, "-1.0"), (0.0, "0.0"), (1e-5, "1e-05"), (12345.0, "1.234e+04"), (1234.0, "1234.0"),
        (0.123456, "0.1235"), (1, "1"), (True, "True"), (None, "None"), ("1", "1"), (2.0**60, "1.153e+18"),
        (float("inf"), "inf"),
    ],
)  # fmt: skip
def test_numbers_are_rounded_and_stay_what_they_are(value: object, text: str) -> None:
    assert setting_text(value) == text
    assert params_text({"a": value, "b": None}) == f"a={text}, b=None"
