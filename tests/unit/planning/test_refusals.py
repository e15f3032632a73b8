"""What the plan refuses or says, so that nobody finds it out after hours of work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from shown_output import note_texts

from tuning.definition.definition import define
from tuning.errors import DataError, DefinitionError, PlanError
from tuning.planning.plan import make_plan

SPACE = {"x": {"type": "float", "low": 0.0, "high": 1.0}}


def frame(**columns: Any) -> pd.DataFrame:
    numbers = np.random.default_rng(0).normal(size=(12, 3))
    return pd.DataFrame(numbers, columns=["a", "b", "y"]).assign(**columns)


def notes(in_process: bool = False, **fields: Any) -> str:
    given = {"target": "y", "task": "regression", "search_space": "ridge", "trials": 3, "mlflow": False, "slots": 1}
    return "\n".join(note_texts(make_plan(define({**given, **fields}), in_process=in_process)))


def notes_of_objective(**fields: Any) -> str:
    given = {"objective": grows, "search_space": SPACE, "metric": "loss", "mode": "min", "trials": 3, "slots": 1}
    return "\n".join(note_texts(make_plan(define({**given, "algorithm": "random", **fields}))))


def grows(config: dict[str, float]) -> Iterator[float]:
    yield config["x"]


# --- columns ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"target": "yy"}, "target: no customer has a column 'yy'. Did you mean 'y'? There are 'a', 'b', 'y'"),
        ({"features": ["a", "bb"]}, "features: no customer has a column 'bb'. Did you mean 'b'?"),
        ({"drop": "leak"}, "drop: no customer has a column 'leak'. There are 'a', 'b', 'y'"),
        ({"weight": "w"}, "weight: no customer has a column 'w'."),
        ({"split": {"group": "aa"}}, "split.group: no customer has a column 'aa'."),
        ({"split": {"column": "when"}}, "split.column: no customer has a column 'when'."),
    ],
)
@pytest.mark.parametrize("form", ["files", "frames", "table", "keyed files"])
def test_a_column_that_nobody_has_is_one_refusal(
    form: str, fields: dict[str, Any], message: str, tmp_path: Path
) -> None:
    data: Any = {"one": frame(), "two": frame()}
    if form == "files":
        frame().to_csv(tmp_path / "one.csv", index=False)
        frame().to_parquet(tmp_path / "two.parquet")
        (tmp_path / "broken.csv").write_bytes(b"\xff\xfe\x00,\x01")  # another customer's file is not to be blamed
        data = str(tmp_path)
    if "e" in form and form != "files" and form != "frames":
        table = frame(who=["u", "v"] * 6)
        table.to_csv(tmp_path / "table.csv", index=False)
        data = {"data": table if form == "table" else str(tmp_path / "table.csv"), "by": "who"}
        message = message.replace("no customer has a", "the table has no").partition(" There are")[0]
    else:
        data = {"data": data}
    with pytest.raises(PlanError, match=re.escape(message)):
        notes(**data, **fields)


def test_a_column_that_some_have_is_a_note() -> None:
    data = {"one": frame(old=1), "two": frame(), "three": frame()}
    assert "drop: 2 of the 3 customers looked at have no column 'old'." in notes(data=data, drop="old")
    assert "have no column" not in notes(data=data, drop="a", features="b")


@pytest.mark.long
def test_data_that_nobody_can_read_is_one_refusal(tmp_path: Path) -> None:
    for name in ("one", "two"):
        frame().to_csv(tmp_path / f"{name}.csv", index=False)
    with pytest.raises(
        DataError, match=r"no customer can be read, of 2 looked at\. Correct `data`.* The first: .* utf-16"
    ):
        notes(data=str(tmp_path), encoding="utf-16")
    (tmp_path / "mine.py").write_text("def broken(frame):\n    return frame['gone']\n")
    with pytest.raises(DataError, match=r"no customer can be read, .* The first: prepare failed: KeyError: 'gone'"):
        notes(data=str(tmp_path), prepare=f"{tmp_path / 'mine.py'}:broken")


def test_a_table_over_a_limit_has_no_say_in_the_columns_that_there_are(tmp_path: Path) -> None:
    plain, wide = frame(), frame(c=1, d=2, e=3)
    with pytest.raises(PlanError, match=r"drop: no customer has a column 'e'"):
        notes(data={"plain": plain, "wide": wide}, drop="e", limits={"max_columns": 5})
    said = r"no customer can be read, .* its table has 6 columns, more than limits.max_columns: 5; raise it"
    with pytest.raises(DataError, match=said):
        notes(data=wide, limits={"max_columns": 5})


@pytest.mark.long
def test_columns_are_looked_for_after_prepare(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def derive(frame):\n    return frame.assign(c=1)\n")
    prepare = f"{tmp_path / 'mine.py'}:derive"
    assert "column" not in notes(data={"one": frame()}, prepare=prepare, drop="c")
    with pytest.raises(PlanError, match="drop: no customer has a column 'd'"):
        notes(data={"one": frame()}, prepare=prepare, drop="d")


def test_a_storage_that_there_is_none_of_is_refused() -> None:
    with pytest.raises(
        PlanError, match=r"storage 'ftp://user:\*\*\*@x/y' cannot be opened: .* such as s3://bucket/fold"
    ):
        notes(data=frame(), storage="ftp://user:secret@x/y")
    assert notes(data=frame(), storage="s3://a-bucket-that-nobody-looks-for/runs") == notes(data=frame())


def test_a_storage_that_cannot_be_written_is_refused_where_the_run_would_be_in_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PlanError, match=r"storage .* cannot be a folder: .*file is a file"):
        notes(data=frame(), storage=str(tmp_path / "file" / "runs"))
    made = define({"target": "y", "data": frame(), "mlflow": False, "storage": str(tmp_path / "file" / "runs")})
    assert make_plan(made, run_dir=tmp_path / "new" / "run").studies
    assert not (tmp_path / "new").exists()


# --- the user's own code ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ("os:system", "models: 'system' cannot be built: TypeError: system() missing required argument"),
        ("os:getcwd", "which is no estimator: it has no fit and predict"),
        ("math:pi", "models: 'pi' cannot be built: TypeError"),
    ],
)
def test_what_is_no_model_is_refused(models: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(message)):
        notes(data=frame(), models=[models], search_space=None, in_process=True)


@pytest.mark.parametrize("alpha", ["../x", -1])
def test_a_fixed_parameter_that_a_model_does_not_take_is_refused(alpha: object) -> None:
    model = {"estimator": "sklearn.linear_model:Ridge", "name": "mine", "params": {"alpha": alpha}}
    with pytest.raises(DefinitionError, match=re.escape(f"models: 'mine' does not take {{'alpha': {alpha!r}}}: The")):
        notes(data=frame(), models=[model, "ridge"], search_space=None, in_process=True)


@pytest.mark.parametrize("key", ["prepare", "metric", "objective"])
@pytest.mark.parametrize("form", ["file", "module"])
def test_code_that_ends_the_program_when_it_is_loaded(
    key: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"ends_{key}.py").write_text("import sys\nsys.exit()\n")
    monkeypatch.syspath_prepend(tmp_path)
    named = f"{tmp_path / f'ends_{key}.py'}:f" if form == "file" else f"ends_{key}:f"
    with pytest.raises(DefinitionError, match=f"ends_{key}.* cannot be (loaded|imported): SystemExit"):
        notes_of_objective(objective=named) if key == "objective" else notes(data=frame(), **{key: named})


def test_an_objective_that_cannot_be_found_is_refused_by_the_plan(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="'nowhere:loss' cannot be imported"):
        notes_of_objective(objective="nowhere:loss")
    (tmp_path / "mine.py").write_text("def loss(config):\n    return 1.0\n")
    assert notes_of_objective(objective=f"{tmp_path / 'mine.py'}:loss", scheduler="fifo") == ""
    with pytest.raises(DefinitionError, match="the file has no 'los'"):
        notes_of_objective(objective=f"{tmp_path / 'mine.py'}:los")


def alone() -> float:
    return 0.0


def misnamed(config: dict[str, float], model: object) -> float:
    return 0.0


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (alone, "objective: alone takes no argument; it is given the configuration."),
        (
            misnamed,
            "objective: misnamed wants 'model', which a trial does not have; it is given config, data, files, seed",
        ),
    ],
)
def test_an_objective_that_cannot_be_called_is_refused(objective: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(message)):
        notes_of_objective(objective=objective)


def test_a_metric_of_probabilities_leaves_out_models_without_them(tmp_path: Path) -> None:
    (tmp_path / "cost.py").write_text("def cost(y, proba):\n    return 1.0\ncost.needs_proba = True\n")
    fields = {
        "data": frame(y=["a", "b"] * 6),
        "task": "binary",
        "metric": f"{tmp_path / 'cost.py'}:cost",
        "mode": "min",
    }
    with pytest.raises(PlanError, match=r"'svm' is left out: it has no probabilities, which 'cost\.py:cost' needs"):
        notes(**fields, search_space="svm")


# --- what cannot come to pass -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        (
            {"scheduler": {"name": "asha", "grace_period": 3}},
            "asha: grace_period 3 is not below the 3 steps of a full trial, so none of these is ever stopped early.",
        ),
        (
            {"search_space": "tabular-regression", "scheduler": {"name": "median", "grace_period": 4}},
            "grace_period 4 is not below the 3 steps of a full trial of 'ridge', 'elastic_net', 'knn'",
        ),
        (
            {"warm_start": [{"config": {}, "score": 1.0}], "algorithm": "sobol"},
            "warm_start: sobol learns nothing from known scores.",
        ),
        ({"resources": {"cpus": 64}}, "resources.cpus: 64 is more than there is here: 1. Request less"),
        ({"slots": 5000}, "slots: 5,000 trials at once on the"),
    ],
)
def test_what_has_no_effect_is_said(fields: dict[str, Any], note: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: False)  # of a connected cluster nobody says what it has
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert note in notes(data=frame(), **fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"drop": "a", "weight": "b"}, "drop, weight: no effect, since an objective is tuned instead of models"),
        ({"final_fit": "search"}, "final_fit: no effect, since an objective is tuned"),
        ({"models": "ridge"}, "models: no effect, since an objective is tuned"),
        (
            {"by": "a", "prepare": "copy:copy", "encoding": "cp1252", "csv": {"sep": ";"}, "limits": {"max_rows": 7}},
            "by, prepare, encoding, csv, limits.max_rows: no effect, since there is no `data`",
        ),
    ],
)
def test_keys_of_models_and_of_rows_are_refused_beside_an_objective(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(message)):
        notes_of_objective(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"steps": 9}, "steps: it is the length of an objective's trials"),
        (
            {"save_models": False, "mlflow": {"record_models": "all"}},
            "mlflow.record_models: `save_models: false`",
        ),
        (
            {"compare": {"algorithms": ["random", "sobol"], "seconds": 9}, "stop": {"study_time": 5}},
            "stop.study_time: `compare.seconds` is the time of a study already",
        ),
    ],
)
def test_keys_that_undo_each_other_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(message)):
        notes(data=frame(), **fields)


def test_a_population_that_never_changes_is_refused() -> None:
    pbt = {"name": "pbt", "perturbation_interval": 30}
    given = {"data": frame(), "search_space": "hist_gradient_boosting", "algorithm": "random"}
    with pytest.raises(PlanError, match=r"perturbation_interval 30 is not below the \d+ steps.* ever changed"):
        notes(**given, scheduler=pbt)
    assert "perturbation_interval" not in notes(**given, scheduler={"name": "pbt", "perturbation_interval": 2})


@pytest.mark.parametrize(
    ("metric", "target", "message"),
    [
        ("r2", 95, "stop.target: 95 is above 1, the best that r2 can be."),
        ("rmse", 1e308, "stop.target: 1e+308 is what every score of rmse reaches"),
        ("rmse", -0.5, "stop.target: -0.5 is below 0, the best that rmse can be."),
        ("r2", -1e308, "stop.target: -1e+308 is what every score of r2 reaches"),
    ],
)
def test_a_target_beyond_the_metric_is_refused(metric: str, target: float, message: str) -> None:
    with pytest.raises(PlanError, match=re.escape(message)):
        notes(data=frame(), metric=metric, stop={"target": target})


def test_the_target_of_an_error_is_given_as_it_is_read() -> None:
    given = {"data": frame(), "target": "y", "task": "regression", "search_space": "ridge", "metric": "rmse"}
    spec = make_plan(define({**given, "stop": {"target": 0.5}})).spec
    assert (spec.metric, spec.mode, spec.stop[0].to_dict()) == ("rmse", "min", {"score": 0.5})


@pytest.mark.parametrize(
    ("metric", "score", "known", "ends"), [("r2", 1.5, -3.2, "-inf to 1"), ("rmse", -3.2, 3.2, "0 to inf")]
)
def test_a_known_score_that_the_metric_cannot_give_is_refused(
    metric: str, score: float, known: float, ends: str
) -> None:
    entries = [{"config": {}}, {"config": {}, "score": score}]
    with pytest.raises(PlanError, match=rf"warm_start\.1\.score: {score} is no score of .*goes from {ends}\."):
        notes(data=frame(), metric=metric, warm_start=entries)
    entries[1]["score"] = known
    notes(data=frame(), metric=metric, warm_start=entries)


def test_a_warm_start_for_nobody_is_a_typo() -> None:
    entry = {"config": {}, "customer": "acm"}
    with pytest.raises(
        PlanError, match=re.escape("warm_start.0.customer: there is no customer 'acm' among 2. Did you")
    ):
        notes(data={"acme": frame(), "beta": frame()}, warm_start=[entry])
    # Of chosen customers nobody knows whether the others are there.
    notes(data={"acme": frame(), "beta": frame()}, customers="beta", warm_start=[{"config": {}, "customer": "acme"}])


def test_a_customers_own_space_is_checked_against_the_algorithm(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "a.csv", index=False)
    path = str(tmp_path / "a.csv")
    own = {"path": path, "search_space": {"model": {"type": "constant", "value": "ridge"}, **_floats(9)}}
    with pytest.raises(DefinitionError, match="customer 'beta': search_space: 'ridge' does not take"):
        notes(data={"acme": path, "beta": own})
    with pytest.raises(PlanError, match=r"customer 'beta': algorithm 'grid': levels: the grid has 1,953,125"):
        notes_of_objective(data={"acme": path, "beta": {"path": path, "search_space": _floats(9)}}, algorithm="grid")


def _floats(count: int) -> dict[str, object]:
    return {f"x{number}": {"type": "float", "low": 0.0, "high": 1.0} for number in range(count)}


# --- one customer among others ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ("logistic", "preset 'logistic' is for binary, multiclass, not regression"),
        ({"alpha": {"type": "float", "low": 0.1, "high": 1.0}}, "it has no parameter `model`"),
    ],
    ids=["preset", "by hand"],
)
def test_a_search_space_of_ones_own_that_cannot_work_names_its_customer(
    space: object, message: str, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        frame().to_csv(tmp_path / f"{name}.csv", index=False)
    data = {"one": str(tmp_path / "one.csv"), "two": {"path": str(tmp_path / "two.csv"), "search_space": space}}
    with pytest.raises((PlanError, DefinitionError), match=rf"^customer 'two': search_space: {re.escape(message)}"):
        notes(data=data)


def test_a_space_that_does_not_go_with_a_guess_says_whose_data_was_looked_at() -> None:
    large = pd.concat([frame(y=["no", "yes"] * 6)] * 2)
    with pytest.raises(PlanError, match=r"not binary; task 'binary' .* is guessed from .*'one' alone is regression"):
        notes(data={"one": frame(), "two": large}, task="auto")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({1: frame(), "1": frame()}, "data: two customers have the id '1', as text; rename one"),
        (
            {"one": frame(), "two": frame().to_numpy()},
            "data: customer 'two': a path, a mapping or a DataFrame is expected, not ndarray",
        ),
        ({"one": frame(), "two": 7}, "data: customer 'two': a path, a mapping or a DataFrame is expected, not int"),
    ],
    ids=["one id", "an array", "a number"],
)
def test_an_entry_that_is_no_customer_is_refused_and_hides_nobody(data: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        notes(data=data)
