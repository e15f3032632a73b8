"""What docs/schedulers.md and docs/objectives.md show for a scheduler runs as it stands there, on small data."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from paths import ROOT

from tuning import TuneRunner
from tuning.cli.demo_customers import write_customers

DOCS = ROOT / "docs"
RECIPES = re.findall(
    r"```yaml\n(.*?)```",
    (DOCS / "schedulers.md").read_text().split("<!-- recipes -->")[1].split("<!-- /")[0],
    flags=re.S,
)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: str(recipe).rpartition("scheduler: ")[2].strip())
def test_a_recipe_for_a_scheduler_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recipe: str) -> None:
    write_customers(tmp_path / "customers", customers=4)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipe.yaml").write_text(re.sub(r"trials: \d+", "trials: 6", recipe))
    scheduler = recipe.rpartition("scheduler: ")[2].strip()
    result = TuneRunner.from_yaml("recipe.yaml", customers=["customer-01"], mlflow=False).run(
        str(tmp_path / "run"), progress=False, in_process=True
    )
    assert list(result.leaderboard()["status"]) == ["ok"]
    trials = result.trial_records
    assert len(trials) == 6
    assert {trial.scheduler for trial in trials} == {scheduler}
    if scheduler == "asha":
        assert any(trial.reason.startswith("asha: rung") for trial in trials)
    if scheduler == "pbt":
        assert any(trial.lineage for trial in trials)


def test_the_objective_for_population_based_training_runs(
    ray_cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (block,) = re.findall(r"```python\n(import copy\n.*?)```", (DOCS / "objectives.md").read_text(), flags=re.S)
    monkeypatch.chdir(tmp_path)
    shown: dict[str, object] = {}
    exec(compile(block, "objectives.md", "exec"), shown)
    records = shown["result"].trial_records
    assert {record.state for record in records} == {"finished"}
    for taken in (record for record in records if record.lineage):
        assert [step.step for step in taken.steps] == list(range(1, 11))
    assert any(record.lineage for record in records)
