"""What a trial costs in MLflow, by every way of writing it: ours, Ray's callback, the plain client.

    python -m benchmarks.mlflow_cost                        all figures, three minutes on two quiet cores
    python -m benchmarks.mlflow_cost --output json          one JSON object last
    python -m benchmarks.mlflow_cost --trials 100000 --keep DIR     a large database, to look at in MLflow's UI

A trial has 7 params, 5 steps, 3 further figures and 8 to 10 tags. Milliseconds are wall time per trial, reading our
record parts included; a store's creation and the imports are not. `process_…` is CPU time, imports and creation
included, of the process that copies a run. docs/mlflow.md explains the figures.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

TESTS = str(Path(__file__).resolve().parent.parent / "tests" / "helpers")
if TESTS not in sys.path:
    sys.path.append(TESTS)  # the servers and the faulty proxy are the tests' own

PER_STUDY, STEPS = 20, 5
BUSY_SECONDS = 20.0


@click.command()
@click.option("--trials", default=20_000, show_default=True, help="Trials for the bulk writers.")
@click.option("--slow-trials", default=40, show_default=True, help="Trials for Ray's callback and the plain client.")
@click.option("--http-trials", default=400, show_default=True, help="Trials for a tracking server.")
@click.option("--models", default=20, show_default=True, help="Models to log.")
@click.option("--keep", type=click.Path(file_okay=False), help="Keep the SQLite database in this folder.")
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def main(trials: int, slow_trials: int, http_trials: int, models: int, keep: str | None, output: str) -> None:
    """Measure what MLflow costs per trial and per model."""
    os.environ.update(MLFLOW_DISABLE_TELEMETRY="true", RAY_USAGE_STATS_ENABLED="0", MLFLOW_LOGGING_LEVEL="CRITICAL")
    os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"
    figures: dict[str, float | None] = {}
    core: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(sys.stderr):
        folder = Path(name)
        template = new_database(folder / "template.db")
        figures["bulk_sqlite_ms"] = bulk_sqlite(folder, template, trials, keep)
        core = process(folder, trials)
        figures["bulk_postgres_ms"] = bulk_postgres(folder, trials)
        figures |= http(folder, template, http_trials)
        figures["ray_callback_ms"] = ray_callback(folder, template, slow_trials)
        figures["plain_client_ms"] = plain_client(folder, template, slow_trials)
        figures["model_ms"] = model(folder, template, models)
        figures["outage_cpu_share"] = outage(folder)
    bulk, ray = figures["bulk_sqlite_ms"], figures["ray_callback_ms"]
    figures["ray_over_bulk"] = None if not bulk or not ray else ray / bulk
    figures |= core
    if output == "json":
        click.echo(json.dumps({**{k: _round(v) for k, v in figures.items()}, "trials": trials}))
        return
    for name, value in figures.items():
        click.echo(f"{name:20s} {'not measured' if value is None else f'{value:.3f}'}")


def bulk_sqlite(folder: Path, template: Path, trials: int, keep: str | None) -> float:
    """Our writer into a SQLite file."""
    place = Path(keep).resolve() if keep else folder / "bulk"
    place.mkdir(parents=True, exist_ok=True)
    shutil.copy(template, place / "mlflow.db")
    return ours(place / "records", f"sqlite:///{place / 'mlflow.db'}", trials)


def bulk_postgres(folder: Path, trials: int) -> float | None:
    """Our writer into a private PostgreSQL server; None when none is installed."""
    from postgres_server import PostgresServer, missing

    reason = missing()
    if reason is not None:
        click.echo(f"bulk_postgres_ms is not measured: {reason}", err=True)
        return None
    server = PostgresServer(durable=True)
    try:
        return ours(folder / "postgres", server.uri(), trials)
    finally:
        server.remove()


def http(folder: Path, template: Path, trials: int) -> dict[str, float]:
    """Our writer through a tracking server over SQLite: wall time, and the server's and our own CPU of it."""
    from mlflow_server import MlflowServer

    place = folder / "server"
    place.mkdir()
    cpu: list[tuple[float, float]] = []
    with MlflowServer(place, template) as server:

        def look() -> None:
            cpu.append((group_seconds(server.process.pid), time.process_time()))

        wall = ours(place / "records", server.uri, trials, look)
    theirs, our_own = ((after - before) * 1000 / trials for before, after in zip(*cpu, strict=True))
    return {"http_ms": wall, "http_server_core_ms": theirs, "http_client_core_ms": our_own}


def ray_callback(folder: Path, template: Path, trials: int) -> float:
    """Ray's `MLflowLoggerCallback`, called as Tune's controller calls it: start, every report, end."""
    from ray.air.integrations.mlflow import MLflowLoggerCallback

    shutil.copy(template, folder / "ray.db")
    callback = MLflowLoggerCallback(tracking_uri=f"sqlite:///{folder / 'ray.db'}", experiment_name="ray")
    callback.setup()

    class Trial:
        def __init__(self, number: int) -> None:
            self.config, self.trial_id = config_of(number), f"8f3a1_{number:05d}"

        def __str__(self) -> str:
            return f"objective_{self.trial_id}"

    def work(count: int) -> None:
        for number in range(count):
            trial = Trial(number)
            callback.log_trial_start(trial)
            for step in range(1, STEPS + 1):
                callback.log_trial_result(step, trial, tune_result(trial, step))
            callback.log_trial_end(trial)

    work(2)
    return per_trial(lambda: work(trials), trials)


def tune_result(trial: Any, step: int) -> dict[str, Any]:
    """A report of `tune.report({"score": …})` as Tune hands it to callbacks."""
    return {
        "score": 0.7 + step / 100,
        "timestamp": 1_795_000_000,
        "checkpoint_dir_name": None,
        "done": False,
        "training_iteration": step,
        "trial_id": trial.trial_id,
        "date": "2026-11-20_12-00-00",
        "time_this_iter_s": 0.01,
        "time_total_s": 0.01 * step,
        "pid": 4711,
        "hostname": "host",
        "node_ip": "127.0.0.1",
        "config": trial.config,
        "time_since_restore": 0.01 * step,
        "iterations_since_restore": step,
    }


def plain_client(folder: Path, template: Path, trials: int) -> float:
    """`MlflowClient`, used well: three calls per trial."""
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param, RunTag

    shutil.copy(template, folder / "plain.db")
    client = MlflowClient(f"sqlite:///{folder / 'plain.db'}")
    experiment = client.create_experiment("plain", artifact_location=str(folder / "plain"))

    def work(count: int) -> None:
        for number in range(count):
            run = client.create_run(experiment, tags={"mlflow.parentRunId": "0" * 32}, run_name=f"acme/{number:04d}")
            client.log_batch(
                run.info.run_id,
                metrics=[Metric("score", 0.7 + step / 100, 1_795_000_000_000, step) for step in range(STEPS)],
                params=[Param(key, str(value)) for key, value in config_of(number).items()],
                tags=[RunTag(f"tuning.{name}", "value") for name in ("customer", "state", "algorithm", "seed")],
            )
            client.set_terminated(run.info.run_id, "FINISHED")

    work(2)
    return per_trial(lambda: work(trials), trials)


def model(folder: Path, template: Path, count: int) -> float:
    """Logging a winner (a random forest of 50 trees) as an MLflow model."""
    import numpy as np
    import pandas as pd
    from mlflow_records import study, write_part

    from tuning.definition.definition import define
    from tuning.evaluation.study_data import study_data
    from tuning.models.customer_model import CustomerModel
    from tuning.models.member import Member
    from tuning.models.registry import family as find_family
    from tuning.storage.run_directory import RunDirectory

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 8)), columns=[f"x{n}" for n in range(8)])
    frame["y"] = (frame["x0"] + rng.normal(size=300) > 0).astype(int)
    data = study_data(frame, define({"data": "x", "target": "y"}), "binary", 0)
    family = find_family("random_forest")
    encoder, rows, _ = data.whole(family)
    fitted = family.fit({"n_estimators": 50}, rows, data.task, 0, steps=None)
    alone = (Member(family.name, data.columns, encoder, fitted),)
    winner = CustomerModel("acme", data.task, alone, example=data.example)
    shutil.copy(template, folder / "models.db")
    directory = RunDirectory(str(folder / "models"))
    digest = winner.save(directory, "models/acme").sha256
    records = [
        study(f"c{n:04d}", 1, family=family.name, model_path="models/acme", model_sha256=digest)
        for n in range(count + 1)
    ]
    copier = copier_of(directory, f"sqlite:///{folder / 'models.db'}", models=True)
    copier.add(write_part(directory, "studies", *records))
    copier.work()
    copier.log_model()  # the first one imports

    def rest() -> None:
        while copier.status.models_pending:
            copier.log_model()

    return per_trial(rest, count)


def outage(folder: Path) -> float:
    """CPU seconds of the copy per second while a server hangs and then refuses: what a search loses of one core."""
    from faulty_proxy import FaultyProxy
    from mlflow_records import live_copy, open_run, write_part

    from tuning.storage.run_directory import RunDirectory

    directory = RunDirectory(str(folder / "outage"))
    with open_run(directory):
        for number in range(500):
            write_part(directory, f"trials-{number}", *records_of(number, 1))
        proxy = FaultyProxy(1)
        proxy.set("hang")
        copy = live_copy(directory, proxy.uri, "outage")
        while copy.status.healthy:
            time.sleep(0.1)
        child = copy._child
        assert child is not None
        shares = []
        for fault in ("hang", "refuse"):
            proxy.set(fault)
            before, started = cpu_seconds(child.pid), time.monotonic()
            time.sleep(BUSY_SECONDS)
            shares.append((cpu_seconds(child.pid) - before) / (time.monotonic() - started))
        proxy.close()
        copy.close(0.0)
    return max(shares)


def process(folder: Path, trials: int) -> dict[str, float]:
    """CPU of the whole copying process, which is what a search on busy cores pays: core-seconds for a run of one trial,
    summary included, and core-milliseconds for each further trial; into a new SQLite database."""
    least, most = (copying(folder / f"process-{count}", count) for count in (1, trials))
    return {"process_core_s": least, "process_core_ms": (most - least) * 1000 / (trials - 1)}


def copying(place: Path, trials: int) -> float:
    """Core-seconds of the child that copies a run with parts of ten customers."""
    from mlflow_records import live_copy, open_run, write_part

    from tuning.storage.run_directory import RunDirectory
    from tuning.tracking.summary import Summary, save_summary

    directory = RunDirectory(str(place))
    shutil.rmtree(place, ignore_errors=True)
    studies = max(1, trials // PER_STUDY)
    each = min(trials, PER_STUDY)
    with open_run(directory):
        for first in range(0, studies, 10):
            block = range(first, min(first + 10, studies))
            write_part(directory, f"trials-{first}", *(r for n in block for r in records_of(n, each)))
            write_part(directory, f"studies-{first}", *(study_of(n) for n in block))
        board = "customer,metric,test_score,baseline_test_score,gain\nacme,roc_auc,0.8,0.7,0.1\n"
        save_summary(directory, Summary(1.0, 2.0), {"leaderboard.csv": board.encode()})
        before = children_seconds()
        status = live_copy(directory, None, "cost").close(600.0)
    assert (status.pending, status.trials) == (0, max(1, studies * each)), status
    return children_seconds() - before


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ours(place: Path, uri: str, trials: int, look: Callable[[], None] = lambda: None) -> float:
    """Parts on disk into a store, by the one class that every copy uses; look: called before and after."""
    from mlflow_records import write_part

    from tuning.storage.run_directory import RunDirectory

    directory = RunDirectory(str(place))
    studies = max(1, trials // PER_STUDY)
    warm = copier_of(directory, uri)
    warm.add(write_part(directory, "trials-warm", *records_of(10**6, 1)))
    warm.work()
    copier = copier_of(directory, uri)
    for first in range(0, studies, 10):
        block = range(first, min(first + 10, studies))
        copier.add(write_part(directory, f"trials-{first}", *(r for n in block for r in records_of(n, PER_STUDY))))
        copier.add(write_part(directory, f"studies-{first}", *(study_of(n) for n in block)))
    copier.store()

    def work() -> None:
        while not copier.idle:
            copier.work()
        copier.finish()

    look()
    result = per_trial(work, studies * PER_STUDY)
    look()
    assert copier.status.trials == studies * PER_STUDY
    return result


def copier_of(directory: Any, uri: str, models: bool = False) -> Any:
    from tuning.tracking.copier import Copier
    from tuning.tracking.mlflow_names import TrackedSearch
    from tuning.tracking.settings import Selection
    from tuning.tracking.stores import open_store

    search = TrackedSearch("cost", "run")
    artifacts = None if uri.startswith("http") else directory.path("mlruns")
    return Copier(directory, search, Selection(None), lambda: open_store(uri, search, artifacts), models)


def records_of(study: int, trials: int) -> Iterator[Any]:
    from mlflow_records import trial

    from tuning.records.schema import StepRecord

    rng = random.Random(study)
    for number in range(trials):
        score = rng.random()
        steps = [StepRecord(step, score * step / STEPS, step / 100) for step in range(1, STEPS + 1)]
        yield trial(f"customer-{study:05d}", number, config=config_of(number), steps=steps, score=score, metrics={})


def study_of(number: int) -> Any:
    from mlflow_records import study

    return study(f"customer-{number:05d}", PER_STUDY, config=config_of(PER_STUDY - 1))


def config_of(number: int) -> dict[str, Any]:
    return {
        "max_depth": 2 + number % 8,
        "learning_rate": 0.01 + number / 1000,
        "subsample": 0.8,
        "reg_lambda": 1.0,
        "n_estimators": 100,
        "min_child_weight": 3,
    }


def new_database(path: Path) -> Path:
    from tuning.tracking.stores.database import prepare

    prepare(f"sqlite:///{path}")
    return path


def per_trial(work: Callable[[], None], trials: int) -> float:
    """Milliseconds."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000 / trials


def group_seconds(group: int) -> float:
    """CPU seconds of the processes of a process group that are alive."""
    return sum(cpu_seconds(int(path.name)) for path in Path("/proc").glob("[0-9]*") if _group_of(path.name) == group)


def _group_of(pid: str) -> int:
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(int(pid))
    return 0


def cpu_seconds(pid: int) -> float:
    values = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


if __name__ == "__main__":
    main()
