"""What the service costs: its answers to 50 clients, its memory, and what it adds to a run.

    python -m benchmarks.service --output json

A real `tuning serve` on loopback, with SQLite, answers clients in processes of their own:

- `answers`: 50 clients, each of whom asks about once a second for the list of 1,000 runs, a page of the leaderboard of
  50,000 customers in a drawn order, or one customer; milliseconds at the 95th percentile (`_p95`) and the median, by
  kind, while nothing searches, and while a run works. `server_cpu_ms`: what the server itself works for one answer.
- `memory`: megabytes that the server holds (resident; `own_mb` without the files that it maps) when it has opened ten
  such runs; and before and after 2,000 submissions, all of which are cancelled.
- `first_trial`: seconds from `POST /runs` to the end of the first recorded trial, and from the start of `tuning run`.
- `champions`: milliseconds of the prediction of one row by champions, one request after another: of 100 whose models
  are in memory (`hot`), and of 5,000 whose models are not (`cold`); `child_cpu_ms`: what the process with the models
  works for one; `child_mb`: what it holds at the end, with the models of all.
- `rate`: trials per second of the whole run, as a submitted run's driver and as the command.

`--quick` takes 2,000 customers and fewer repetitions of everything. `musts` has what was missed. `load` is that of the
machine before and after: what other processes take is in every figure. The ten runs of `first_trial` and `rate` work
for about 20 core-seconds each, so stderr has each of them as it ends.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click
import httpx
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import feather
from sqlalchemy import insert

from benchmarks.first_second import definition_of
from benchmarks.million.alone import environment
from benchmarks.served_champions import cpu_ms, predicting
from tuning.runs.results import RunResult
from tuning.service.client import TuningClient
from tuning.service.database.connection import Database
from tuning.service.database.runs import Runs
from tuning.service.database.tables import RUNS
from tuning.service.database.tokens import Role, Tokens
from tuning.service.states import RunState
from tuning.service.views.tables import LEADERBOARD_FILE, STUDIES_FILE, SUMMARY_FILE, TRIALS_FILE, order_of

CLIENTS, PROCESSES, LISTED, OPENED = 50, 5, 1000, 10
THINKS_S = (0.5, 1.5)  # between a client's answer and its next question
SORTS = ("customer", "cv_score", "gain", "trials", "seconds")
MB = 2**20
TEAM = "bench"
CONFIG = {"teams": {TEAM: {"quotas": {"queued_runs": 100_000}}}}

Figures = dict[str, float]


@dataclass(frozen=True)
class Size:
    """How much is measured. seconds: of questions; rounds: of each run that is compared with the command."""

    customers: int = 50_000
    seconds: float = 60.0
    submissions: int = 2000
    rounds: int = 5
    trials: int = 100
    cold: int = 5000


QUICK = Size(customers=2000, seconds=20.0, submissions=200, rounds=1, trials=20, cold=500)


class Served:
    """A server in a folder of its own, its database, and a client."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "service.yaml").write_text(json.dumps(CONFIG))
        database = f"sqlite:///{folder}/service.db"
        words = ["--port", "0", "--slots", "2", "--database", database, "--config", "service.yaml"]
        self.database = Database(database)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tuning.cli", "serve", *words], cwd=folder, stdout=subprocess.PIPE, text=True,
            stderr=(folder / "served.txt").open("w"), env={**environment(), "TUNING_CONFIG": str(folder / "config")},
            start_new_session=True,  # what ends this program leaves the server to `close`
        )  # fmt: skip
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            raise click.ClickException((folder / "served.txt").read_text())
        self.tokens = [Tokens(self.database).create(TEAM, Role.SUBMIT, f"{n}", time.time()) for n in range(CLIENTS)]
        self.client = TuningClient(self.url, token=self.tokens[0])
        (folder / "small").mkdir()
        given = {key: value for key, value in definition_of(folder / "small").items() if key != "mlflow"}
        self.definition = {**given, "data": "small/*.csv", "slots": 2, "report": False}

    def close(self) -> None:
        """End the server, and first the runs, which would outlive it."""
        for run in [run for run in self.client.runs() if run.running]:
            run.cancel().wait()
        self.client.close()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.database.close()

    def memory(self) -> Figures:
        """Megabytes that the server holds."""
        found = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        kilobytes = {line.split(":")[0]: line.split()[1] for line in found if line.startswith(("VmRSS", "RssAnon"))}
        return {name: round(int(kilobytes[key]) / 1024, 1) for name, key in (("mb", "VmRSS"), ("own_mb", "RssAnon"))}

    def cpu_ms(self) -> float:
        """Milliseconds that the server's own process has worked."""
        return cpu_ms(self.process.pid)

    def finished(self, run: str) -> str:
        """Wait for a run, and return its directory."""
        ended = self.client.run(run).wait()
        if ended.state is not RunState.FINISHED:
            raise click.ClickException(f"a run is {ended.state}: {ended.reason}")
        return Runs(self.database).get(run).run_directory


@contextlib.contextmanager
def serving() -> Iterator[Served]:
    with tempfile.TemporaryDirectory(prefix="service-") as folder:
        served = Served(Path(folder))
        try:
            yield served
        finally:
            served.close()


def large_runs(served: Served, customers: int) -> list[str]:
    """Ten runs of so many customers, and older ones for the list.

    Their tables, which are all that the server reads of them, are those of a small run, whose customers come again and
    again under other names.
    """
    small = served.client.submit(served.definition, name="small").id
    served.finished(small)
    served.client.run(small).leaderboard()
    (tables,) = (served.folder / "service" / "work" / small / "views").iterdir()
    row = vars(Runs(served.database).get(small))
    rows = [
        {**row, "id": f"{number:024x}", "name": f"week {number}", "submitted": row["submitted"] - number}
        for number in range(1, LISTED)
    ]
    with served.database.write() as connection:
        connection.execute(insert(RUNS), rows)
    opened = [str(each["id"]) for each in rows[:OPENED]]
    made = served.folder / "large"
    many_customers(tables, made, customers)
    for run in opened:
        shutil.copytree(made, served.folder / "service" / "work" / run / "views" / tables.name, copy_function=os.link)
    return opened


def many_customers(small: Path, folder: Path, customers: int) -> None:
    """The tables of a run in `small` with so many customers, each of which is one of its own."""
    folder.mkdir()
    shutil.copy(small / SUMMARY_FILE, folder)
    board = feather.read_table(small / LEADERBOARD_FILE)
    chosen, rng = np.arange(customers) % len(board), np.random.default_rng(0)
    ids = np.array([f"customer {number:05}" for number in range(customers)])
    for file in (TRIALS_FILE, STUDIES_FILE):
        records = feather.read_table(small / file)
        of_one = [np.flatnonzero(pc.equal(records["customer"], each)) for each in board["customer"]]
        rows = [of_one[number] for number in chosen]
        names = np.repeat(ids, [len(each) for each in rows])
        feather.write_feather(
            _with(records.take(np.concatenate(rows)), "customer", names), folder / file, "uncompressed"
        )
    found = _with(board.take(chosen), "customer", ids)
    for name in found.column_names:
        if name.startswith(order_of("")):
            found = _with(found, name, rng.permutation(customers))
    feather.write_feather(found, folder / LEADERBOARD_FILE, "uncompressed")


def _with(table: pa.Table, name: str, values: np.ndarray) -> pa.Table:
    """A table with other values in a column, if it has it."""
    if name not in table.column_names:
        return table
    place = table.column_names.index(name)
    return table.set_column(place, table.schema.field(place), pa.array(values).cast(table.schema.field(place).type))


def ask(
    url: str, tokens: list[str], runs: list[str], customers: int, seconds: float, seed: int
) -> dict[str, list[float]]:
    """Milliseconds of the answers to some clients, who ask one after the other; in a process of its own."""
    found: dict[str, list[float]] = {"list": [], "leaderboard": [], "customer": []}

    def one(number: int) -> None:
        rng, end = random.Random(seed * 1000 + number), time.monotonic() + seconds
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {tokens[number]}"}, timeout=60) as client:
            time.sleep(rng.uniform(0, THINKS_S[1]))
            while time.monotonic() < end:
                kind = rng.choice(list(found))
                path, asked = "/api/v1/runs", dict[str, str | int]()
                if kind == "leaderboard":
                    start = rng.randrange(0, max(1, customers - 50))
                    path, asked = f"{path}/{rng.choice(runs)}/leaderboard", {"sort": rng.choice(SORTS), "start": start}
                elif kind == "customer":
                    path, asked = (
                        f"{path}/{rng.choice(runs)}/customer",
                        {"id": f"customer {rng.randrange(customers):05}"},
                    )
                began = time.perf_counter()
                answer = client.get(path, params=asked)
                found[kind].append((time.perf_counter() - began) * 1000)
                answer.raise_for_status()
                time.sleep(rng.uniform(*THINKS_S))

    with concurrent.futures.ThreadPoolExecutor(len(tokens)) as threads:
        for ended in [threads.submit(one, number) for number in range(len(tokens))]:
            ended.result()
    return found


def answers(served: Served, runs: list[str], size: Size) -> Figures:
    """Milliseconds of the answers to all clients, and the server's own time for each."""
    before = served.cpu_ms()
    each = CLIENTS // PROCESSES
    parts = [served.tokens[start : start + each] for start in range(0, CLIENTS, each)]
    with concurrent.futures.ProcessPoolExecutor(PROCESSES) as processes:
        asked = [
            processes.submit(ask, served.url, part, runs, size.customers, size.seconds, number)
            for number, part in enumerate(parts)
        ]
        found = [each.result() for each in asked]
    shown: Figures = {}
    for kind in found[0]:
        times = [milliseconds for part in found for milliseconds in part[kind]]
        shown |= {
            f"{kind}_p95": round(float(np.quantile(times, 0.95)), 1),
            f"{kind}_median": round(statistics.median(times), 1),
            f"{kind}_asked": len(times),
        }
    asked_in_all = sum(shown[f"{kind}_asked"] for kind in found[0])
    return {**shown, "server_cpu_ms": round((served.cpu_ms() - before) / asked_in_all, 2)}


def open_all(served: Served, runs: list[str]) -> None:
    """Look at the leaderboard of each run in every order, so that its tables are there and mapped."""
    with httpx.Client(headers={"Authorization": f"Bearer {served.tokens[0]}"}, timeout=600) as client:
        for run in runs:
            for sort in SORTS:
                address = f"{served.url}/api/v1/runs/{run}/leaderboard"
                client.get(address, params={"sort": sort}).raise_for_status()


def memory(served: Served, size: Size) -> Figures:
    """What the server holds before and after many submissions, while a run has all slots; they are cancelled."""
    blocking = served.client.submit({**served.definition, "trials": 1_000_000}, name="blocking")
    for _ in range(size.submissions // 10):  # what the first ones load is not what each costs
        served.client.submit(served.definition, name="before").cancel()
    before = served.memory()
    for _ in range(size.submissions):
        served.client.submit(served.definition, name="many").cancel()
    after = served.memory()
    blocking.cancel()
    return {"before_mb": before["mb"], "after_mb": after["mb"], "before_own_mb": before["own_mb"],
            "after_own_mb": after["own_mb"]}  # fmt: skip


def compared(served: Served, size: Size) -> tuple[Figures, Figures]:
    """First trials and rates of the same definition, submitted and as the command, one after the other (ABBA)."""
    definition = {**served.definition, "trials": size.trials}
    first: Mapping[str, list[float]] = {"submitted": [], "command": []}
    rate: Mapping[str, list[float]] = {"submitted": [], "command": []}
    for number in range(size.rounds):
        for way in ("submitted", "command") if number % 2 == 0 else ("command", "submitted"):
            began = time.time()
            directory = (
                served.finished(served.client.submit(definition, name="compared").id)
                if way == "submitted"
                else _as_command(served.folder, definition, f"command-{number}")
            )
            trials = RunResult(directory).trial_records
            ends = [trial.started + trial.seconds for trial in trials]
            first[way].append(min(ends) - began)
            rate[way].append(len(trials) / (max(ends) - min(trial.started for trial in trials)))
            said = f"first trial after {first[way][-1]:.2f} s, {rate[way][-1]:.1f} trials/s"
            click.echo(f"round {number + 1} of {size.rounds}, {way}: {said}", err=True)
    return _medians(first, "more_s", lambda here, command: here - command), _medians(
        rate, "ratio", lambda here, command: here / command
    )


def _as_command(folder: Path, definition: Mapping[str, object], name: str) -> str:
    (folder / f"{name}.yaml").write_text(json.dumps(definition))
    words = ["run", f"{name}.yaml", "--run-dir", name, "--resume", "--progress", "none", "--output", "json"]
    command = [sys.executable, "-m", "tuning.cli", *words]
    subprocess.run(command, cwd=folder, env=environment(), stdout=subprocess.DEVNULL, check=True)
    return str(folder / name)


def _medians(found, name, combine):  # type: ignore[no-untyped-def]  # of the functions above alone
    here, command = (statistics.median(found[way]) for way in ("submitted", "command"))
    return {"submitted": round(here, 3), "command": round(command, 3), name: round(combine(here, command), 3)}


def missed(figures: Mapping[str, Figures]) -> list[str]:
    """What is not as it must be."""
    found = list[str]()

    def must(kept: bool, what: str) -> None:
        if not kept:
            found.append(what)

    if quiet := figures.get("answers"):
        for name in ("list_p95", "leaderboard_p95", "customer_p95"):
            must(quiet[name] <= 150, f"{name} is {quiet[name]} ms, above 150")
        must(figures["opened"]["mb"] <= 600, f"the server holds {figures['opened']['mb']} MB, above 600")
    if held := figures.get("memory"):
        must(held["after_mb"] <= 1.05 * held["before_mb"], "the memory grows by more than 5 %")
    if first := figures.get("first_trial"):
        must(first["more_s"] <= 0.5, f"a submitted run's first trial is {first['more_s']} s later, above 0.5")
        must(figures["rate"]["ratio"] >= 0.98, f"its rate is {figures['rate']['ratio']} of the command's, below 0.98")
    return found


@click.command()
@click.option("--quick", is_flag=True, help="Fewer customers, seconds, submissions and rounds.")
@click.option(
    "--only", multiple=True, type=click.Choice(["runs", "memory", "champions", "answers"]), help="A part of it."
)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def main(quick: bool, only: tuple[str, ...], output: str) -> None:
    """Measure a server."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no server and no run is left
    size, load = QUICK if quick else Size(), os.getloadavg()[0]
    figures: dict[str, Figures] = {}

    def tell(name: str, found: Figures) -> None:
        figures[name] = found
        if output == "text":
            click.echo(f"{name:14} " + "  ".join(f"{key} {value:g}" for key, value in found.items()))

    with serving() as served:
        if not only or "runs" in only:
            for name, found in zip(("first_trial", "rate"), compared(served, size), strict=True):
                tell(name, found)
        if not only or "memory" in only:
            tell("memory", memory(served, size))
        if not only or "champions" in only:
            promoted = served.finished(served.client.submit(served.definition, name="promoted").id)
            tell("champions", predicting(served.url, served.tokens[0], promoted, size.cold))
        if not only or "answers" in only:
            runs = large_runs(served, size.customers)
            open_all(served, runs)
            tell("answers", answers(served, runs, size))
            tell("opened", served.memory())
            working = served.client.submit({**served.definition, "trials": 1_000_000}, name="busy")
            tell("answers_busy", answers(served, runs, size))
            working.cancel()
    shown = {**figures, "musts": missed(figures), "load": [load, os.getloadavg()[0]]}
    click.echo(
        json.dumps(shown) if output == "json" else f"missed: {shown['musts'] or 'nothing'}; load {shown['load']}"
    )


if __name__ == "__main__":
    main()
