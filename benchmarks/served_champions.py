"""What a server takes to predict a row by champions: see `champions` of `python -m benchmarks.service`."""

from __future__ import annotations

import contextlib
import json
import os
import random
import statistics
import time
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np

from tuning.models.model_files import saved_files
from tuning.runs.results import RunResult
from tuning.serving.champion import HERE, champions_of, table_of
from tuning.serving.models import ReleaseModels
from tuning.serving.promoting import promote_run
from tuning.serving.release import REFRESH, Release
from tuning.serving.releases import Releases
from tuning.storage.packs import PackWriter

HOT = 100  # champions whose models are in memory


def predicting(url: str, token: str, directory: str, cold: int) -> dict[str, float]:
    """Milliseconds of one row's prediction by champions, whose models are copies of a single one.

    directory: of a run of the token's team. cold: champions whose models are in no memory.
    """
    releases = Releases("bench", Path(directory).parent)
    promote_run(RunResult(directory), releases)
    first = champions_of(releases.champions(releases.current()))[0]
    models = ReleaseModels.current("bench", releases.storage)
    writer, found = PackWriter(releases.directory), [first]
    place = releases.run_directory(first.run)
    files = list(saved_files(place, str(first.model_path), first.model_sha256))
    for number in range(HOT + cold):
        folder = writer.folder("answers", f"customer-{number}")
        for file in files:
            writer.write(f"{folder}/{file.name}", file.content)
        found.append(replace(first, customer=f"customer-{number}", run=HERE, model_path=folder))
    writer.flush()
    releases.place(Release(2, 1, REFRESH), table_of(found))
    example = models.of(first.customer).model.example
    assert example is not None
    row = json.loads(str(example[:1].to_json(orient="records")))
    rng = random.Random(0)
    hot = [f"customer-{rng.randrange(HOT)}" for _ in range(min(cold, 10 * HOT))]
    others = [f"customer-{HOT + number}" for number in rng.sample(range(cold), cold)]
    shown: dict[str, float] = {}
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=url, headers=headers, timeout=60) as client:

        def milliseconds(customer: str) -> float:
            began = time.perf_counter()
            answer = client.post("/api/v1/champions/bench/predictions", params={"id": customer}, json={"rows": row})
            took = (time.perf_counter() - began) * 1000
            answer.raise_for_status()
            return took

        for number in range(HOT):
            milliseconds(f"customer-{number}")
        team = Path(releases.storage).name
        child = next(int(pid) for pid in os.listdir("/proc") if pid.isdigit() and _is_child(pid, team))
        for name, customers in (("hot", hot), ("cold", others)):
            before = cpu_ms(child)
            times = [milliseconds(customer) for customer in customers]
            shown |= {
                f"{name}_p50": round(statistics.median(times), 1),
                f"{name}_p95": round(float(np.quantile(times, 0.95)), 1),
                f"{name}_child_cpu_ms": round((cpu_ms(child) - before) / len(times), 1),
            }
    return {**shown, "model_kb": round(sum(len(file.content) for file in files) / 1024, 1), "child_mb": _mb(child)}


def _is_child(pid: str, team: str) -> bool:
    """Whether a process is the one that has a team's models in memory."""
    with contextlib.suppress(OSError):
        return f"/work/champions/{team}" in os.readlink(f"/proc/{pid}/cwd")
    return False


def cpu_ms(pid: int) -> float:
    """Milliseconds that a process has worked."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def _mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(round(int(line.split()[1]) / 1024, 1) for line in lines if line.startswith("VmRSS"))
