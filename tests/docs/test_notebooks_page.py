"""What docs/notebooks.md shows runs as it stands there, in order, on small data."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from builders import make_frame
from paths import ROOT

from tuning import RunResult

BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8"), flags=re.S)


def test_the_blocks_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    frame = pd.concat([make_frame(seed=seed).assign(shop=name) for seed, name in enumerate(("acme", "beta"))])
    shown: dict[str, object] = {"frame": frame.rename(columns={"y": "sales"})}
    for block in BLOCKS:
        # Each run here is in this process, without Ray: what is tested is what the page says.
        quick = block.replace(".run(background=True)", ".run(background=True, in_process=True)")
        quick = quick.replace(".run()", ".run(in_process=True, progress=False)").replace("trials=10", "trials=2")
        quick = quick.replace('mode="min"', 'mode="min", mlflow=False')
        exec(compile(quick.replace('target="sales"', 'target="sales", mlflow=False'), "notebooks.md", "exec"), shown)
    result = shown["result"]
    assert isinstance(result, RunResult)
    assert len(BLOCKS) == 3
    assert len(BLOCKS[0].replace("\n\n", "\n").strip().splitlines()) <= 4
    assert len([line for line in BLOCKS[1].splitlines() if line]) <= 8
