"""`tuning validate` and `tuning plan`: what they refuse, and what `--set` changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import tuning

from tuning.definition.yaml_file import read_definition


def test_validate_names_the_customers_that_would_get_no_model(definition: Path) -> None:
    answer = tuning("validate", definition)
    assert answer.exit_code == 3
    assert answer.stdout == "'tiny': 3 rows with a target, fewer than min_rows: 4.\n"
    found = json.loads(tuning("validate", definition, "--output", "json").stdout)
    assert found["without_model"] == {"tiny": "3 rows with a target, fewer than min_rows: 4."}
    assert found["customers"] == 3
    assert tuning("validate", definition, "--customer", "acme").exit_code == 0
    none = tuning("validate", definition, "--customer", "tiny", "--set", "task=binary")
    assert none.exit_code == 4
    assert "none of the 1 customer read would get a model" in none.stderr


def test_customers_who_share_a_reason_are_said_once(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.csv").write_text("x,y\n1,1.5\n2,2.5\n")
    (tmp_path / "d.yaml").write_text("data: '*.csv'\ntarget: y\ntask: regression\n")
    answer = tuning("validate", tmp_path / "d.yaml")
    assert answer.exit_code == 4
    assert answer.stdout == "'a', 'b', 'c': 2 rows with a target, fewer than min_rows: 4.\n"
    assert "none of the 3 customers read would get a model" in answer.stderr


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("data: customers\ntargt: y\n", 2, "targt: unknown key. Did you mean 'target'?"),
        ("data: customers\ntarget: churned\ntrials: many\n", 2, "trials: must be a whole number (got 'many')"),
        ("data: customers\ntarget: churned\nscheduler: ahsa\n", 2, "did you mean 'asha'"),
        ("data: customers\nby x\ntarget: churned\n", 2, "d.yaml, line 2, column 1 is not YAML"),
        ("data: customers\ntarget: churned\nmetric: rmse\n", 2, "'rmse' does not fit binary"),
        ("data: customers\ntarget: churned\nmlflow: {tracking_uri: 'htp://x'}\n", 2, "MLflow knows no htp://"),
        ("data: customers\ntarget: churned\nsplit: {fold: 3}\n", 2, "split.fold: unknown key. Did you mean 'folds'?"),
        ("data: customers\ntarget: churned\nlimits: {max_rows: 0}\n", 2, "limits.max_rows"),
        (
            "data: customers\ntarget: churned\nby: churned\n",
            2,
            "'churned' is the column to predict, so it cannot be under `by` too",
        ),
        ("data: {acme: gone.csv}\ntarget: churned\n", 2, "no customer can be read, of 1 looked at. Correct `data`"),
        ("data: customers\n", 2, "target: the column to predict is missing"),
        ("- data\n", 2, "holds ['data']; keys and values are expected"),
        ("data: customers\ntarget: a\ntarget: b\n", 2, "d.yaml, line 3: the key 'target' occurs twice"),
        ("data: nowhere/*.csv\ntarget: y\n", 2, "no file matches"),
        (
            "data: customers\ntarget: churn\n",
            2,
            "target: no customer has a column 'churn'. Did you mean 'churned'? There are 'plan'",
        ),
        ("data: customers\ntarget: churned\nprepare: nowhere.py:f\n", 2, "nowhere.py"),
    ],
)
def test_a_wrong_definition_is_refused_with_the_way_out(
    text: str, code: int, message: str, customers: Path, tmp_path: Path
) -> None:
    (tmp_path / "d.yaml").write_text(text.replace("customers", str(customers)))
    for command in ("validate", "plan", "run"):
        answer = tuning(command, tmp_path / "d.yaml", *(("--progress=none",) if command == "run" else ()))
        assert (answer.exit_code, message in answer.stderr) == (code, True), answer.stderr
        assert not answer.stdout


def test_set_overrides_parts_and_keeps_the_rest(definition: Path) -> None:
    answer = tuning(
        "plan", definition, "--output", "json", "--set", "scheduler.grace_period=2", "--set", "trials=7", "--set",
        "split.folds=4",
    )  # fmt: skip
    facts = json.loads(answer.stdout)
    assert facts["trials"] == 21
    made = read_definition(definition, {"scheduler": {"grace_period": 2}, "algorithm": {"name": "random"}})
    assert made.scheduler.to_dict()["reduction_factor"] == 3
    assert made.scheduler.to_dict()["grace_period"] == 2
    assert read_definition(definition, {"scheduler": {"name": "fifo"}}).scheduler.name == "fifo"
    wrong = tuning("plan", definition, "--set", "trials")
    assert wrong.exit_code == 2
    assert "KEY=VALUE is expected" in wrong.stderr
    assert "KEY=VALUE is expected" in tuning("plan", definition, "--set", "=3").stderr
    nested = tuning("plan", definition, "--set", "trials=3", "--set", "trials.more=2")
    assert nested.exit_code == 2
    assert "is not a mapping" in nested.stderr


def test_options_without_a_name_are_those_of_the_default(customers: Path, tmp_path: Path) -> None:
    """The example of docs/commands.md, on a definition that names neither."""
    (tmp_path / "d.yaml").write_text(f"data: {customers}\ntarget: churned\n")
    given = ("--set", "scheduler.grace_period=2", "--set", "algorithm.n_startup_trials=5")
    facts = json.loads(tuning("plan", tmp_path / "d.yaml", "--output", "json", *given).stdout)
    assert (facts["scheduler"], facts["algorithm"]) == ("asha", "optuna")
    made = read_definition(tmp_path / "d.yaml", {"scheduler": {"grace_period": 2}})
    assert made.scheduler.to_dict()["grace_period"] == 2
    wrong = tuning("plan", tmp_path / "d.yaml", "--set", "scheduler.burn_in_period=2")
    assert (wrong.exit_code, "scheduler asha: unknown option 'burn_in_period'" in wrong.stderr) == (2, True)


def test_a_plan_as_json_names_the_metric_as_its_text_does(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("x,y\n" + "".join(f"{number},{number * 0.5}\n" for number in range(40)))
    (tmp_path / "d.yaml").write_text("data: d.csv\ntarget: y\nmetric: rmse\nsearch_space: ridge\n")
    facts = json.loads(tuning("plan", tmp_path / "d.yaml", "--output", "json").stdout)
    assert (facts["metric"], facts["mode"]) == ("rmse", "min")
