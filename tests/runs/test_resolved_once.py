"""What was read and resolved when a run began is not read and resolved again."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builders import definition, write_customers
from data_shapes import write_frame
from file_events import IN_CLOSE_NOWRITE, IN_OPEN, FileEvents
from without_ray import refuse_ray

from tuning import RunResult, TuneRunner
from tuning.data import file_access
from tuning.data.formats import csv_file
from tuning.data.registry import file_source
from tuning.execution.packed import work_batch
from tuning.execution.worker import WorkerRun
from tuning.runs.begin import begin


def test_workers_resolve_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(30, 3)), columns=["a", "b", "y"]).to_csv(tmp_path / "rows.csv", index=False)
    data = {"acme": str(tmp_path / "rows.csv"), "beta": {"path": str(tmp_path / "rows.csv"), "search_space": "lasso"}}
    owned = begin(
        TuneRunner(data=data, target="y", search_space="ridge", algorithm="random", trials=3).definition,
        str(tmp_path / "run"),
    )
    owned.lease.release()
    for name in ("space_of", "check_models", "resolve_metric", "agreed_task"):
        monkeypatch.delattr(f"tuning.planning.resolution.{name}")
    for batch in range(len(owned.plan.batches)):
        work_batch(WorkerRun.from_owned(owned), batch, lambda _: None)
    assert RunResult(owned.directory).leaderboard()["status"].tolist() == ["ok", "ok"]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_a_file_is_opened_at_most_twice_before_its_first_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """Once before the run, for its header, its target and its digest, and once by the worker that trains on it."""
    refuse_ray(monkeypatch)
    write_customers(tmp_path / "data", 20)
    for path in (tmp_path / "data").glob("*.csv"):
        frame = pd.read_csv(path)
        path.unlink()
        write_frame(frame, path.with_suffix(suffix))
    given = definition(tmp_path / "data", data=f"{tmp_path}/data/*{suffix}", placement="auto", task="auto", trials=1)
    with closing(FileEvents(tmp_path / "data", IN_OPEN | IN_CLOSE_NOWRITE)) as events:
        result = TuneRunner(**given).run(tmp_path / "run", progress=False)
        opens = Counter(name for mask, name in events.read() if mask == IN_OPEN and name)
    assert result.summary()["succeeded"] == 20
    assert (len(opens), max(opens.values())) == (20, 2)


def test_a_large_file_is_opened_once_for_its_header_and_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_file, "HEADER_BYTES", 100)
    write_customers(tmp_path, 1)
    for suffix in (".csv", ".csv.gz"):
        source = file_source(str(tmp_path / f"c0000{suffix}"), {})
        if suffix == ".csv.gz":
            write_frame(pd.read_csv(tmp_path / "c0000.csv"), source.path)
        with closing(FileEvents(tmp_path, IN_OPEN | IN_CLOSE_NOWRITE)) as events:
            assert len(source.read()) == 40
            assert [mask for mask, name in events.read() if name] == [IN_OPEN, IN_CLOSE_NOWRITE]


def test_a_file_that_is_replaced_while_its_content_is_kept_is_read_again(tmp_path: Path) -> None:
    write_customers(tmp_path, 2)
    source = file_source(str(tmp_path / "c0000.csv"), {})
    with file_access.read_once():
        before, digest = source.read(), file_access.file_digest(source.path)
        (tmp_path / "c0001.csv").replace(tmp_path / "c0000.csv")
        assert not source.read().equals(before)
        assert file_access.file_digest(source.path) != digest
    assert file_access.file_digest(source.path) != digest
