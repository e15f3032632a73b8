"""What a release of many customers costs: to write it, to read it, to go back to it, each in a process of its own.

python -m benchmarks.champions --customers 100000
python -m benchmarks.champions --customers 10000 --files    also a refresh of so many files without a new row
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd

from tuning import TuneRunner
from tuning.data.customers import find_customers
from tuning.data.fingerprints import digested
from tuning.definition.definition import Definition
from tuning.definition.given import definition_of
from tuning.evaluation.fixed import FixedConfiguration, FixedMember
from tuning.notes import ServingCode
from tuning.serving.champion import OWN, Champion, champions_of, table_of
from tuning.serving.plan import RefreshOptions, plan_refresh
from tuning.serving.release import PROMOTE, REFRESH, Release
from tuning.serving.releases import Releases
from tuning.serving.rollback import roll_back

NAME = "benchmark"
PACK = 2000  # models in a file


def champions(customers: int) -> Iterator[Champion]:
    """Champions as a run makes them, each an ensemble of two models."""
    rng = np.random.default_rng(0)
    for number in range(customers):
        digest = hashlib.sha256(str(number).encode()).hexdigest()
        members = [
            FixedMember({"model": "xgboost", "max_depth": 4, "learning_rate": float(rng.random())}, number, 87, 0.6),
            FixedMember({"model": "ridge", "alpha": float(rng.random())}, number, None, 0.4),
        ]
        yield Champion(
            customer=f"customer-{number:07d}",
            answer=OWN,
            run="../../run",
            study=f"customer-{number:07d}",
            model_path=f"models/{number // PACK:016x}.zip/customer-{number:07d}",
            model_sha256=digest,
            configuration=FixedConfiguration(tuple(members)).to_json(),
            rows=500,
            since=1,
            stamp=f"{number} 1760000000",
            digest=digest[::-1],
            size=20_000,
            searched=1,
            searched_size=20_000,
            score=float(rng.random()),
            reason=(ServingCode.WINNER(),),
        )


def write(storage: str, customers: int) -> Callable[[], None]:
    """A first release."""
    given = list(champions(customers))
    return lambda: placed(storage, 1, PROMOTE, given)


def placed(storage: str, number: int, why: str, given: list[Champion]) -> None:
    parent = number - 1 or None
    Releases(NAME, storage).place(Release(number, parent, why), table_of(given))


def read(storage: str, customers: int) -> Callable[[], None]:
    """The newest release as a row for each customer."""

    def work() -> None:
        releases = Releases(NAME, storage)
        assert len(champions_of(releases.champions(releases.current()))) == customers

    return work


def change(storage: str, _: int) -> Callable[[], None]:
    """A release with another champion for one customer in ten."""

    def work() -> None:
        releases = Releases(NAME, storage)
        found = champions_of(releases.champions(releases.current()))
        placed(storage, 2, REFRESH, [replace(each, since=2) if at % 10 == 0 else each for at, each in enumerate(found)])

    return work


def back(storage: str, _: int) -> Callable[[], None]:
    """All go back to the first release."""

    def work() -> None:
        assert roll_back(Releases(NAME, storage))[1]

    return work


def unchanged(storage: str, customers: int) -> Callable[[], None]:
    """A refresh of customers with a file of thirty rows each, of which none is new."""
    data, releases = Path(storage, "data"), Releases("files", storage)
    data.mkdir()
    given = list(champions(customers))
    for number, each in enumerate(given):
        lines = "".join(f"{row},{(row * number) % 97}\n" for row in range(30))
        (data / f"{each.customer}.csv").write_text(f"x,y\n{lines}")
    definition: Definition = definition_of(None, {"data": f"{data}/*.csv", "target": "y", "storage": storage})
    there = zip(given, digested(definition, find_customers(definition)), strict=True)
    releases.place(
        Release(1, None, PROMOTE), table_of(replace(each, stamp=now.stamp, digest=now.digest) for each, now in there)
    )

    def work() -> None:
        again = Releases("files", storage)
        assert plan_refresh(definition, again, RefreshOptions()).nothing_to_do

    return work


STAGES = {"written": write, "read": read, "one in ten changed": change, "rolled back": back}
REFRESHED = {"refreshed without a new row": unchanged}


def timed(stage: str, storage: str, customers: int) -> tuple[float, float, float]:
    """(wall seconds, CPU seconds, MB of this process at most)."""
    work = (STAGES | REFRESHED)[stage](storage, customers)
    start, cpu = time.perf_counter(), time.process_time()
    work()
    wall, used = time.perf_counter() - start, time.process_time() - cpu
    return wall, used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--customers", type=int, default=100_000)
    parser.add_argument("--files", action="store_true")
    chosen = parser.parse_args()
    customers: int = chosen.customers
    with tempfile.TemporaryDirectory() as storage:
        frame = pd.DataFrame({"x": range(40), "y": np.arange(40) * 2.0})
        runner = TuneRunner(data=frame, target="y", search_space="ridge", trials=1, mlflow=False)
        runner.run(f"{storage}/run", in_process=True, progress=False)
        for stage in (*STAGES, *(REFRESHED if chosen.files else ())):
            with get_context("spawn").Pool(1) as process:
                wall, cpu, most = process.apply(timed, (stage, storage, customers))
            print(f"{customers:,} champions {stage}: {wall:.2f} s, {cpu:.2f} core-s, {most:.0f} MB")
        size = sum(file.stat().st_size for file in Path(storage, "champions").rglob("*") if file.is_file())
        print(f"{len(list(Path(storage, 'champions', NAME, 'releases').iterdir()))} releases, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
