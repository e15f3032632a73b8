"""`tuning init`: the definition that it writes, and what it needs for it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from commands import tuning

from tuning.definition.yaml_file import read_definition


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
    assert (values["encoding"], values["metric"]) == ("cp1252", "rmse")
    assert values["csv"] == {"sep": ";", "decimal": ","}
    assert "# by: kunde_id  # 7 different values" in answer.stdout
    (tmp_path / "d.yaml").write_text(answer.stdout)
    assert tuning("validate", tmp_path / "d.yaml").exit_code == 0


def test_a_few_whole_numbers_are_counts_unless_the_metric_scores_classes(tmp_path: Path) -> None:
    rows = "".join(f"{number},{number * 7 % 11},{3 + number * number % 6}\n" for number in range(240))
    (tmp_path / "wine.csv").write_text("acid,sugar,quality\n" + rows)
    text = tuning("init", tmp_path / "wine.csv", "--target", "quality").stdout
    assert "task: regression  # whole numbers, 4 different ones in 240 rows: counts more often than classes\n" in text
    assert "metric: rmse  # the default for regression" in text
    given = tuning("init", tmp_path / "wine.csv", "--target", "quality", "--metric", "accuracy").stdout
    assert "task: multiclass  # whole numbers with 4 different values (3, 4, 6, 7)" in given
    assert "metric: accuracy  # as given" in given
    for made, task in ((text, "regression"), (given, "multiclass")):
        (tmp_path / "d.yaml").write_text(made)
        assert f"task        {task}" in tuning("plan", tmp_path / "d.yaml").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "which column is to be predicted? There are: plan, region"),
        (["--target", "churn"], "no column 'churn'. Did you mean 'churned'?"),
        (["--target", "churned", "--by", "plans"], "--by: no column 'plans'"),
        (["--target", "churned", "--by", "churned"], "--by: 'churned' is the target"),
        (["--target", "churned", "--metric", "rmsee"], "metric: 'rmsee' is not a scikit-learn scorer. Did you mean"),
        (["--target", "churned", "--output", "no/folder/d.yaml"], "'no/folder/d.yaml' cannot be written: No such file"),
    ],
)
def test_init_says_what_it_needs(arguments: list[str], message: str, customers: Path) -> None:
    answer = tuning("init", customers, *arguments)
    assert answer.exit_code == 2
    assert message in answer.stderr
    assert not answer.stdout


def test_it_names_a_file_that_it_could_read(tmp_path: Path) -> None:
    (tmp_path / "a-broken.csv").write_bytes(b"x,y\n\xff\xfe\x00\x9d\n")
    (tmp_path / "b-whole.csv").write_text("x,y\n" + "1,2\n3,4\n" * 20)
    text = tuning("init", tmp_path / "*.csv", "--target", "y").stdout
    assert yaml.safe_load(text)["name"] == f"{tmp_path.name}-y"  # of the folder: the files' name is a pattern
    assert text.startswith("# Made by `tuning init` from b-whole.csv and 1 more; every guess says why.\n")
