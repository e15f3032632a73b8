"""The process that trains a run's pool: it is left when the run is to stop, and what happens to it costs the pool."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from builders import definition, write_customers

from tuning import TuneRunner
from tuning.driver.halt import StopConditions
from tuning.driver.hosts.base import HostStoppedError
from tuning.driver.pooling import PoolProcess, settle_pool
from tuning.driver.progress import Counter
from tuning.driver.signals import Signals
from tuning.runs.begin import begin
from tuning.runs.pool_file import pool_settled, read_pool


@pytest.mark.long
def test_a_run_that_is_to_stop_leaves_it_and_settles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_customers(tmp_path / "data", 2)
    runner = TuneRunner(**definition(tmp_path / "data", pool="on"))
    owned = begin(runner.definition, tmp_path / "run")
    with owned.lease as lease:
        halt = StopConditions(lease, Signals(), broken="workers cannot work")
        with PoolProcess(halt) as process, pytest.raises(HostStoppedError):
            process.call("it", 60.0, time.sleep, 60.0)
        settle_pool(owned, Counter.of(owned.plan, 0, None, None), halt, in_process=False)
        assert not pool_settled(owned.directory)
        halt.broken = ""
        monkeypatch.setattr("tuning.driver.pooling.train_pool", sys.exit)
        settle_pool(owned, Counter.of(owned.plan, 0, None, None), halt, in_process=False)
        found = read_pool(owned.directory)
        assert found is not None
        assert found.without.startswith("it cannot be done in a process of its own")
    assert TuneRunner.resume(tmp_path / "run", progress=False, in_process=True).unfinished == 0
