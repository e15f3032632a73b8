"""The commands as a user types them: what they print, write and answer, and never a traceback for a user's mistake."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner, Result
from make_customers import make_customer

from tuning import RunResult
from tuning.cli.output import show_finished
from tuning.cli.program import main
from tuning.definition.yaml_file import read_definition
from tuning.errors import CustomerError

FAST = ("--quiet", "--in-process", "--set", "mlflow=false", "--set", "search_space=logistic", "--set", "trials=2")


def tuning(*arguments: str | Path) -> Result:
    answer = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert answer.exception is None or isinstance(answer.exception, SystemExit), answer.exception
    assert "Traceback" not in answer.output
    return answer


@pytest.fixture(scope="module")
def customers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "customers"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name in ("acme", "beta"):
        make_customer(rng, 120).to_csv(folder / f"{name}.csv", index=False)
    make_customer(rng, 3).to_csv(folder / "tiny.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def definition(customers: Path) -> Path:
    path = customers.parent / "churn.yaml"
    path.write_text("data: customers\ntarget: churned\nscheduler: {name: asha, reduction_factor: 3}\n")
    return path


@pytest.fixture(scope="module")
def finished(definition: Path) -> Path:
    folder = definition.parent / "run"
    answer = tuning("run", definition, "--run-dir", folder, *FAST)
    assert answer.exit_code == 3, answer.output
    return folder


# --- init ---------------------------------------------------------------------------------------


def test_init_writes_a_definition_that_runs_and_says_why(customers: Path, tmp_path: Path) -> None:
    target = tmp_path / "deep" / "new.yaml"
    target.parent.mkdir()
    answer = tuning("init", customers, "--target", "churned", "--output", target)
    assert answer.exit_code == 0
    text = target.read_text()
    assert "task: binary  # text or classes with 2 different values (no, yes)" in text
    assert "#   region: text, 5 different" in text
    made = read_definition(target)
    assert (made.target, made.task, made.metric) == ("churned", "binary", "roc_auc")
    assert tuning("plan", target).exit_code == 0
    again = tuning("init", customers, "--target", "churned", "--output", target)
    assert again.exit_code == 2
    assert "--force" in again.stderr
    assert tuning("init", customers, "--target", "churned", "--output", target, "--force").exit_code == 0


def test_init_guesses_how_a_foreign_csv_is_written(tmp_path: Path) -> None:
    rows = "".join(f"Müller {number % 7};{number},5;{number * 2}\n" for number in range(60))
    (tmp_path / "kunden.csv").write_text("kunde_id;preis;umsatz\n" + rows, encoding="cp1252")
    answer = tuning("init", tmp_path / "kunden.csv", "--target", "umsatz")
    values = yaml.safe_load(answer.stdout)
    assert values["encoding"] == "cp1252"
    assert values["csv"] == {"sep": ";", "decimal": ","}
    assert "# by: kunde_id  # 7 different values" in answer.stdout
    (tmp_path / "d.yaml").write_text(answer.stdout)
    assert tuning("validate", tmp_path / "d.yaml").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "which column is to be predicted? There are: plan, region"),
        (["--target", "churn"], "no column 'churn'. Did you mean 'churned'?"),
        (["--target", "churned", "--by", "plans"], "--by: no column 'plans'"),
        (["--target", "churned", "--by", "churned"], "--by: 'churned' is the target"),
        (["--target", "churned", "--output", "no/folder/d.yaml"], "'no/folder/d.yaml' cannot be written: No such file"),
    ],
)
def test_init_says_what_it_needs(arguments: list[str], message: str, customers: Path) -> None:
    answer = tuning("init", customers, *arguments)
    assert answer.exit_code == 2
    assert message in answer.stderr
    assert not answer.stdout


# --- validate, plan -----------------------------------------------------------------------------


def test_validate_names_the_customers_that_would_get_no_model(definition: Path) -> None:
    answer = tuning("validate", definition)
    assert answer.exit_code == 3
    assert answer.stdout == "'tiny': 3 rows with a target, fewer than min_rows: 4.\n"
    found = json.loads(tuning("validate", definition, "--output", "json").stdout)
    assert found["without_model"] == {"tiny": "3 rows with a target, fewer than min_rows: 4."}
    assert found["customers"] == 3
    assert tuning("validate", definition, "--customer", "acme").exit_code == 0
    assert tuning("validate", definition, "--customer", "tiny", "--set", "task=binary").exit_code == 4


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("data: customers\ntargt: y\n", 2, "targt: unknown key. Did you mean 'target'?"),
        ("data: customers\ntarget: churned\ntrials: many\n", 2, "trials: must be a whole number (got 'many')"),
        ("data: customers\ntarget: churned\nscheduler: ahsa\n", 2, "did you mean 'asha'"),
        ("data: customers\ntarget: churned\nscheduler: {name: asha, grace: 2}\n", 2, "did you mean 'grace_period'"),
        ("data: customers\ntarget: churned\nmlflow: {tracking_uri: 'htp://x'}\n", 2, "MLflow knows no htp://"),
        (
            "data: customers\ntarget: churned\nmlflow: {tracking_uri: ./mlruns}\n",
            2,
            "is a folder, and MLflow no longer writes",
        ),
        ("data: customers\ntarget: churned\nmlflow: {tracking_uri: 'sqlite://x.db'}\n", 2, "a database in memory"),
        ("data: customers\ntarget: churned\nalgorithm: {name: optuna, sampler: tpee}\n", 2, "tpe"),
        ("data: customers\ntarget: churned\nsplit: {fold: 3}\n", 2, "split.fold: unknown key. Did you mean 'folds'?"),
        ("data: customers\ntarget: churned\nsearch_space: rigde\n", 2, "Did you mean 'ridge'?"),
        ("data: customers\ntarget: churned\nencoding: utf-9\n", 2, "'utf-9' is not an encoding"),
        ("data: customers\ntarget: churned\nlimits: {max_rows: 0}\n", 2, "limits.max_rows"),
        ("data: customers\ntarget: churned\nencoding: rot13\n", 2, "'rot13' is not an encoding"),
        ("data: customers\ntarget: churned\nby: [plan, plan]\n", 2, "by: the column 'plan' is named twice"),
        (
            "data: customers\ntarget: churned\nby: churned\n",
            2,
            "'churned' is the column to predict, so it cannot be under `by` too",
        ),
        ("data: customers\ntarget: churned\nfeatures: [churned]\n", 2, "it cannot be under `features` too"),
        ("data: customers\ntarget: churned\n1: 2\n", 2, "1: unknown key"),
        ("data: 3\ntarget: churned\n", 2, "data: 3 is not a glob, a file, a folder"),
        ("data: ''\ntarget: churned\n", 2, "data: '' is not a glob"),
        ("data: {acme: gone.csv}\ntarget: churned\n", 2, "no customer can be read, of 1 looked at. Correct `data`"),
        ("data: customers\n", 2, "target: the column to predict is missing"),
        ("target: y\n", 2, "data: a glob, file, mapping or DataFrame is missing"),
        ("data: customers\ntarget: [a\n", 2, "d.yaml, line 3, column 1 is not YAML"),
        ("- data\n", 2, "holds ['data']; keys and values are expected"),
        ("data: customers\ntarget: a\ntarget: b\n", 2, "d.yaml, line 3: the key 'target' occurs twice"),
        ("data: &x customers\ntarget: *x\n", 2, "line 2: *x is an alias; write the value out"),
        ("data: !!python/object:os.system x\ntarget: y\n", 2, "python/object:os.system is not allowed"),
        ("data: nowhere/*.csv\ntarget: y\n", 2, "no file matches"),
        (
            "data: customers\ntarget: churn\n",
            2,
            "target: no customer has a column 'churn'. Did you mean 'churned'? There are 'plan'",
        ),
        ("data: customers\ntarget: churned\nmetric: r2_score\n", 2, "'r2_score' is not a scikit-learn scorer"),
        ("data: customers\ntarget: churned\nmetric: neg_mean_absolute_error\n", 2, "does not fit binary"),
        ("data: customers\ntarget: churned\nprepare: nowhere.py:f\n", 2, "nowhere.py"),
    ],
)
def test_a_wrong_definition_is_refused_with_the_way_out(
    text: str, code: int, message: str, customers: Path, tmp_path: Path
) -> None:
    (tmp_path / "d.yaml").write_text(text.replace("customers", str(customers)))
    for command in ("validate", "plan", "run"):
        answer = tuning(command, tmp_path / "d.yaml", *(("--quiet",) if command == "run" else ()))
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


def test_an_objective_may_be_in_a_file_beside_the_definition(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def loss(config):\n    return config['x'] ** 2\n")
    space = "search_space: {x: {type: float, low: -1, high: 1}}"
    (tmp_path / "d.yaml").write_text(
        f"objective: mine.py:loss\n{space}\nmetric: loss\nmode: min\ntrials: 3\nmlflow: off\n"
    )
    answer = tuning("run", tmp_path / "d.yaml", "--run-dir", tmp_path / "run", "--in-process", "--quiet")
    assert answer.exit_code == 0, answer.output
    (tmp_path / "mine.py").unlink()
    assert tuning("leaderboard", tmp_path / "run").exit_code == 0
    gone = tuning("plan", tmp_path / "d.yaml")
    assert (gone.exit_code, "mine.py:loss': the file cannot be read" in gone.stderr) == (2, True)


def test_users_code_that_exits_does_not_pass_for_success(customers: Path, tmp_path: Path) -> None:
    (tmp_path / "d.yaml").write_text(f"data: {customers}\ntarget: churned\nmodels: ['sys:exit']\n")
    for command in ("plan", "validate", "run"):
        answer = tuning(command, tmp_path / "d.yaml")
        assert answer.exit_code == 2
        assert "models: 'exit' cannot be built: SystemExit" in answer.stderr
    assert not (tmp_path / "runs").exists()


def test_a_model_that_exits_in_its_last_fit_ends_its_study_only(customers: Path, tmp_path: Path) -> None:
    """Trials fit two thirds of the rows that the winner is fitted on."""
    (tmp_path / "mine.py").write_text(
        "import sys\nfrom sklearn.dummy import DummyClassifier\n\nclass Ends(DummyClassifier):\n"
        "    def fit(self, X, y, sample_weight=None):\n"
        "        return sys.exit() if len(X) > 80 else super().fit(X, y, sample_weight)\n"
    )
    (tmp_path / "d.yaml").write_text(
        f"data: {customers}\ntarget: churned\nmodels: [mine.py:Ends]\nsave_models: false\nmlflow: off\n"
    )
    answer = tuning("run", tmp_path / "d.yaml", "--run-dir", tmp_path / "run", "--quiet", "--in-process")
    assert answer.exit_code == 4, answer.output
    rows = json.loads(tuning("leaderboard", tmp_path / "run", "--output", "json").stdout.splitlines()[-1])
    assert "SystemExit" in json.dumps(rows)


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
    answer = tuning(command[0], definition, *command[1:], "--run-dir", tmp_path / "run", "--quiet", "--in-process")
    assert (answer.exit_code, message in answer.stderr) == (2, True), answer.stderr
    assert not (tmp_path / "run").exists()


# --- run, leaderboard, predict ------------------------------------------------------------------


def test_exit_codes_and_outputs_of_a_run(definition: Path, finished: Path, tmp_path: Path) -> None:
    board = tuning("leaderboard", finished, "--output", "csv")
    assert board.exit_code == 0
    assert board.stdout.splitlines()[0].startswith("customer,status,reason")
    assert len(json.loads(tuning("leaderboard", finished, "--output", "json").stdout)) == 3
    one = tuning("run", definition, "--run-dir", tmp_path / "one", "--customer", "acme", "--output", "json", *FAST)
    assert one.exit_code == 0
    counts = json.loads(one.stdout)
    assert (counts["customers"], counts["succeeded"], counts["trials"]) == (1, 1, 2)
    assert 0 <= counts["worse_than_baseline"] <= counts["compared_with_baseline"] <= 1
    none = tuning(
        "run", definition, "--run-dir", tmp_path / "none", "--customer", "tiny", "--set", "task=binary", *FAST
    )
    assert none.exit_code == 4
    again = tuning("run", definition, "--run-dir", finished, *FAST)
    assert again.exit_code == 1
    assert "already holds a run" in again.stderr
    assert tuning("leaderboard", tmp_path).exit_code == 1
    assert tuning("run", tmp_path / "nothing.yaml").exit_code == 2


@pytest.mark.parametrize(
    ("worse", "said"),
    [
        (0, "None of the 5 winners other than the baseline scores below it on the hold-out rows."),
        (2, "2 of the 5 winners other than the baseline (40 %) score below it on the hold-out rows. More"),
    ],
)
def test_a_run_ends_with_how_its_winners_do_against_the_default(
    worse: int, said: str, finished: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = RunResult(str(finished))
    counts = {**result.summary(), "compared_with_baseline": 5, "worse_than_baseline": worse}
    monkeypatch.setattr(result, "summary", lambda: counts)
    show_finished(result, "table")
    error = capsys.readouterr().err
    assert said in error
    assert ("reduce this" in error) == (worse > 0)


def test_predictions_come_back_beside_the_rows(customers: Path, finished: Path, tmp_path: Path) -> None:
    rows = pd.read_csv(customers / "beta.csv").drop(columns="churned")
    rows.to_parquet(tmp_path / "new.parquet", index=False)
    answer = tuning("predict", finished, "--customer", "beta", "--data", tmp_path / "new.parquet", "--output",
                    tmp_path / "out.csv")  # fmt: skip
    assert answer.exit_code == 0, answer.output
    out = pd.read_csv(tmp_path / "out.csv")
    assert list(out.columns) == [*rows.columns, "prediction", "probability_no", "probability_yes"]
    assert set(out["prediction"]) <= {"yes", "no"}
    assert np.allclose(out["probability_no"] + out["probability_yes"], 1)
    printed = tuning("predict", finished, "--customer", "beta", "--data", tmp_path / "new.parquet")
    assert printed.stdout == (tmp_path / "out.csv").read_text()


def test_predict_never_writes_over_its_rows(customers: Path, finished: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_bytes((customers / "beta.csv").read_bytes())
    (tmp_path / "link.csv").symlink_to(tmp_path / "new.csv")
    for output in ("new.csv", "link.csv"):
        answer = tuning("predict", finished, "--customer", "beta", "--data", tmp_path / "new.csv", "--output",
                        tmp_path / output)  # fmt: skip
        assert answer.exit_code == 2
        assert "is the file of --data; name another one" in answer.stderr
    assert (tmp_path / "new.csv").read_bytes() == (customers / "beta.csv").read_bytes()


@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", ".", "--data", "new.csv", "--customer", "acme", "--customer", "beta"),
        ("plan", __file__, "--data", "a.csv", "--data", "b.csv"),
        ("leaderboard", ".", "--output", "csv", "--output", "json"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_an_option_of_one_value_is_refused_twice(arguments: tuple[str, ...]) -> None:
    answer = tuning(*arguments)
    assert answer.exit_code == 2
    assert "is given 2 times. It takes one value; give it once." in answer.stderr


def test_predict_of_no_rows_says_so(customers: Path, finished: Path, tmp_path: Path) -> None:
    pd.read_csv(customers / "beta.csv").head(0).to_csv(tmp_path / "n.csv", index=False)
    answer = tuning("predict", finished, "--customer", "beta", "--data", tmp_path / "n.csv")
    assert (answer.exit_code, answer.stderr) == (2, "error: there are no rows to predict.\n")
    model = RunResult(str(finished)).model("beta")
    for rows, said in ((pd.read_csv(tmp_path / "n.csv"), "no rows"), ([[1, 2]], "DataFrame"), (None, "DataFrame")):
        with pytest.raises(CustomerError, match=said):
            model.predict(rows)


@pytest.mark.parametrize(
    ("customer", "change", "code", "message"),
    [
        ("bata", {}, 2, "no customer 'bata' in this run. Did you mean 'beta'?"),
        ("tiny", {}, 4, "customer 'tiny' has no model: 3 rows with a target"),
        ("beta", {"usage_hours": "lots"}, 2, "'usage_hours' held numbers when the model was fitted"),
        ("beta", {"plan": None}, 2, "columns are missing: 'plan'"),
        (None, {}, 2, "--customer is needed"),
    ],
)
def test_predict_says_what_is_wrong(
    customer: str | None,
    change: dict[str, str | None],
    code: int,
    message: str,
    customers: Path,
    finished: Path,
    tmp_path: Path,
) -> None:
    rows = pd.read_csv(customers / "beta.csv").assign(**change)
    rows.drop(columns=[name for name, value in change.items() if value is None]).to_csv(tmp_path / "n.csv", index=False)
    whose = ("--customer", customer) if customer else ()
    answer = tuning("predict", finished, *whose, "--data", tmp_path / "n.csv")
    assert answer.exit_code == code
    assert message in answer.stderr


def test_rows_of_a_keyed_table_go_to_their_own_model(customers: Path, tmp_path: Path) -> None:
    names = {"acme": "07", "beta": "7", "tiny": "9"}
    table = pd.concat([pd.read_csv(customers / f"{name}.csv").assign(who=key) for name, key in names.items()])
    table = table.sample(frac=1, random_state=0).assign(zip=lambda rows: [f"0{n % 5}" for n in range(len(rows))])
    table.to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "d.yaml").write_text("data: table.csv\nby: who\ntarget: churned\ndrop: tenure_months\n")
    assert tuning("run", tmp_path / "d.yaml", "--run-dir", tmp_path / "run", *FAST).exit_code == 3
    answer = tuning("predict", tmp_path / "run", "--data", tmp_path / "table.csv", "--output", tmp_path / "out.csv")
    assert answer.exit_code == 3
    assert "no prediction for customer '9': customer '9' has no model" in answer.stderr
    out = pd.read_csv(tmp_path / "out.csv", dtype={"who": str})
    assert out["who"].tolist() == table["who"].tolist()
    assert out["prediction"].isna().equals(out["who"] == "9")
    only = table[table["who"] == "07"].drop(columns="who")
    only.to_csv(tmp_path / "acme.csv", index=False)
    one = tuning("predict", tmp_path / "run", "--customer", "07", "--data", tmp_path / "acme.csv", "--output",
                 tmp_path / "one.csv")  # fmt: skip
    assert one.exit_code == 0, one.output
    assert pd.read_csv(tmp_path / "one.csv")["prediction"].tolist() == out[out["who"] == "07"]["prediction"].tolist()


def test_an_output_that_cannot_be_written_is_said(customers: Path, finished: Path, tmp_path: Path) -> None:
    for name, message in (("no/folder/x.csv", "cannot be written"), ("x.xlsx", "is neither CSV nor Parquet")):
        answer = tuning("predict", finished, "--customer", "beta", "--data", customers / "beta.csv", "--output",
                        tmp_path / name)  # fmt: skip
        assert answer.exit_code == 2
        assert message in answer.stderr
    tuning(
        "predict", finished, "--customer", "beta", "--data", customers / "beta.csv", "--output", tmp_path / "x.csv.gz"
    )
    assert len(pd.read_csv(tmp_path / "x.csv.gz")) == 120


# --- help ---------------------------------------------------------------------------------------


def test_help_names_every_command() -> None:
    answer = tuning("--help")
    for name in ("init", "validate", "plan", "run", "resume", "leaderboard", "predict", "compare", "completion"):
        assert f"\n  {name} " in answer.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shells_completion_is_printed(shell: str) -> None:
    answer = tuning("completion", shell)
    assert answer.exit_code == 0
    assert "_TUNING_COMPLETE" in answer.stdout


@pytest.mark.parametrize("name", sorted(main.list_commands(None)))
def test_every_command_has_help(name: str) -> None:
    answer = tuning(name, "--help")
    assert answer.exit_code == 0
    assert answer.stdout.startswith("Usage: ")


def test_a_run_that_is_there_is_resumed_by_the_command_that_is_said(definition: Path, finished: Path) -> None:
    answer = tuning("run", definition, "--run-dir", finished, *FAST)
    assert answer.exit_code == 1
    assert f"already holds a run. Resume it with tuning resume {finished}, or choose" in answer.stderr
    again = tuning("resume", finished, "--in-process", "--quiet", "--output", "json")
    assert again.exit_code == 3
    assert json.loads(again.stdout.splitlines()[-1])["succeeded"] == 2
