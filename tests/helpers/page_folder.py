"""The folder in which a page's snippets run: small data under the names that pages use, and a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from made_up import make_customer

from tuning import RunResult, TuneRunner, tune
from tuning.cli.demo import make_demo
from tuning.compare.tabular.replay import replay
from tuning.definition.definition import Definition
from tuning.definition.given import definition_of

DEFINITION = "churn.yaml"
CHURN = "data: customers/*.csv\ntarget: churned\nmetric: roc_auc\n"
CUSTOMERS = ("acme", "beta", "customer-01", "customer-02")
ROWS, GIANT = 90, 100_000
QUICK = "knn"  # for either task
RESULT = "runs/47"  # a page's `result`
TRIALS, MORE = 2, 3  # of a study; after a resume
SCHEDULED = 4  # where a page names a scheduler, whose decisions are looked for
DEMO_ZONES, DEMO_TRIALS, DEMO_MODELS = 11, 2, ("knn", "catboost")
COMPARED_CUSTOMERS, COMPARED_SEEDS = 2, 2


def write_folder(folder: Path) -> None:
    """What a page finds: customers by file, orders with a giant, zones, new rows."""
    rng = np.random.default_rng(0)
    for name in CUSTOMERS:
        _write(make_customer(rng, ROWS), folder / "customers" / f"{name}.csv")
    _write(make_customer(rng, 5).drop(columns="churned"), folder / "new.csv")
    _write(make_customer(rng, ROWS), folder / "newest.csv")
    for name in (*CUSTOMERS, "odd"):
        _write(other_rows(rng, ROWS), folder / "orders" / f"{name}.parquet")
    _write(other_rows(rng, GIANT), folder / "orders" / "giant.parquet")
    for zone in ("141", "142"):
        _write(other_rows(rng, ROWS), folder / "zones" / f"{zone}.parquet")


def other_rows(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    """Rows with other things to predict: `returned` (yes/no), `seconds`, `sales`; `shop` has two values."""
    frame = make_customer(rng, rows).rename(columns={"churned": "returned"})
    more = {"seconds": rng.gamma(3.0, 200.0, rows), "sales": 3 * frame["tickets"] + rng.normal(20, 2, rows)}
    return frame.assign(**more, shop=np.tile(["acme", "beta"], rows)[:rows])


def _write(frame: pd.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)


# What a page may use without saying where it comes from, as its readers have it.
NAMES = {
    "TuneRunner": lambda: TuneRunner,
    "RunResult": lambda: RunResult,
    "tune": lambda: tune,
    "runner": lambda: TuneRunner.from_yaml(DEFINITION),
    "result": lambda: RunResult(RESULT),
    "new_accounts": lambda: pd.read_csv("new.csv"),
    "frame": lambda: other_rows(np.random.default_rng(0), 2 * ROWS),
    "X": lambda: pd.read_csv("customers/acme.csv").drop(columns="churned"),
    "y": lambda: pd.read_csv("customers/acme.csv")["churned"],
}


def hurry(patch: pytest.MonkeyPatch) -> None:
    """Runs are in this process and without Ray, of few trials of a quick model where a definition names none.

    What a page says of searching is the same; what it takes is not. The demo keeps its models, and has fewer customers.
    """
    run, resume = TuneRunner.run, TuneRunner.resume

    def quick_run(self: TuneRunner, run_dir: Any = None, *, resume: bool = False, **how: Any) -> Any:
        runner = TuneRunner(smaller(self.definition, MORE if resume else TRIALS), fixed=self.fixed)
        return run(runner, run_dir, resume=resume, **{**how, "in_process": True, "progress": False})

    def quick_resume(run_dir: Any, **changes: Any) -> Any:
        if "trials" in changes:
            changes["trials"] = min(changes["trials"], MORE)
        return resume(run_dir, **{**changes, "in_process": True, "progress": False})

    def quick_replay(table: Any, methods: Any, seeds: int, *given: Any) -> Any:
        return replay(table, methods, COMPARED_SEEDS, *given)

    patch.setattr("tuning.compare.tabular.replay.replay", quick_replay)
    patch.setattr(TuneRunner, "run", quick_run)
    patch.setattr(TuneRunner, "resume", staticmethod(quick_resume))
    patch.setattr("tuning.cli.demo.make_demo", lambda folder: make_demo(folder, DEMO_ZONES))


def smaller(definition: Definition, trials: int) -> Definition:
    if definition.name == "demo":
        copied = {**definition.mlflow.model_dump(), "record_models": "none"}  # with models: docs/mlflow-server.md
        fewer = {"trials": DEMO_TRIALS, "models": list(DEMO_MODELS), "pool": "on"}  # `auto` asks for 20 customers
        return definition_of(definition, {**fewer, "mlflow": copied})
    # Not copied while it goes on, which takes a process more: `tuning mlflow sync` is what pages say of it.
    fields: dict[str, Any] = {"mlflow": {**definition.mlflow.model_dump(), "enabled": False}, "report": False}
    if definition.algorithm.name != "grid":  # `tabulate` needs all of it
        most = max(trials, SCHEDULED) if "scheduler" in definition.model_fields_set else trials
        fields["trials"] = min(definition.trials, most)
    others = {entry.config.get("model", QUICK) for entry in definition.warm_start or ()} - {QUICK}
    if definition.target and not others and not definition.model_fields_set & {"models", "search_space"}:
        fields["search_space"] = QUICK
    if definition.compare:
        fields["compare"] = {**definition.compare.to_dict(), "seeds": COMPARED_SEEDS}
        fields["customers"] = CUSTOMERS[:COMPARED_CUSTOMERS]
    return definition_of(definition, fields)
