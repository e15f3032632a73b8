"""A batch of predictions that is killed leaves whole answers only, and a repeat makes the others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tuning import RunResult, TuneRunner
from tuning.runs.prediction.files import predict_files
from tuning.runs.results import RunModels

FILES = 40


def rows(seed: int, count: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"zone": rng.choice(["A", "B"], count), "a": rng.normal(size=count)})
    return frame.assign(y=2 * frame["a"] + rng.normal(scale=0.1, size=count))


@pytest.mark.slow
def test_a_batch_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    rows(0, 100).to_parquet(tmp_path / "table.parquet", index=False)
    runner = TuneRunner(
        data=str(tmp_path / "table.parquet"), by=["zone"], target="y", trials=1, models=["ridge"], mlflow=False
    )
    runner.run(tmp_path / "run", in_process=True, progress=False)
    (tmp_path / "new").mkdir()
    for number in range(FILES):
        rows(number, 2_000).to_parquet(tmp_path / "new" / f"{number:02d}.parquet", index=False)
    command = ["predict", "--run", str(tmp_path / "run"), "--data", str(tmp_path / "new"), "--processes", "1"]
    killed = [sys.executable, "-m", "tuning.cli", *command, "--output", str(tmp_path / "out")]
    child = subprocess.Popen(killed, stderr=subprocess.DEVNULL, process_group=0)
    done = tmp_path / "out" / "_predictions"
    deadline = time.monotonic() + 120
    while len(list(done.glob("[0-9]*.json"))) < 3:
        assert time.monotonic() < deadline
        assert child.poll() is None, "it ended before it was killed: make the files larger"
        time.sleep(0.001)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.parquet")}
    noted = {path.name.removesuffix(".json") for path in done.glob("[0-9]*.json")}
    assert 0 < len(noted) < FILES
    models = RunModels(RunResult(str(tmp_path / "run")))
    counts = predict_files(models, str(tmp_path / "new"), str(tmp_path / "out"), processes=1)
    assert (counts.files, counts.unchanged) == (FILES - len(noted), len(noted))
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.parquet")}
    assert {name: after[name] for name in noted} == {name: before[name] for name in noted}, "none is done twice"
    assert predict_files(models, str(tmp_path / "new"), str(tmp_path / "whole"), processes=1).files == FILES
    for number in range(FILES):
        name = f"{number:02d}.parquet"
        pd.testing.assert_frame_equal(*(pd.read_parquet(tmp_path / each / name) for each in ("out", "whole")))
