"""AutoGluon and MLJAR, in an environment of their own: they need an older pandas than ours.

    python -m venv DIR
    DIR/bin/pip install "autogluon.tabular[catboost,lightgbm,xgboost]==1.6.*" "mljar-supervised==1.3.*"
    QUALITY_RIVALS=DIR python -m benchmarks.quality --contenders ours_20,mljar,autogluon_medium,autogluon_best

Its Python is a child of the contender's process, whose whole tree is watched: a rival's CPU seconds are those of all it
starts, its imports included.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.quality.defaults import nothing
from benchmarks.quality.rounds import Answers, Round

VARIABLE = "QUALITY_RIVALS"
CHILD = Path(__file__).with_name("rivals_child.py")


def missing() -> str:
    """What to do when there is no environment of theirs; empty when there is one."""
    if VARIABLE in os.environ and _python().exists():
        return ""
    made = 'python -m venv DIR && DIR/bin/pip install "autogluon.tabular[catboost,lightgbm,xgboost]==1.6.*"'
    return f'{VARIABLE} names no environment: {made} "mljar-supervised==1.3.*", then {VARIABLE}=DIR'


def rival(tool: str, rounds: Sequence[Round], seconds: float) -> Answers:
    """What a tool of `rivals_child.py` says, with so many seconds of time per customer, one process for all."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "labels.json").write_text(json.dumps([one.labels for one in rounds]))
        for number, one in enumerate(rounds):
            one.given.to_parquet(folder / f"{number}_given.parquet")
            one.unseen.to_parquet(folder / f"{number}_unseen.parquet")
        # Isolated: no variable and no folder of ours brings a package of ours onto its path.
        subprocess.run([str(_python()), "-I", str(CHILD), tool, name, str(seconds)], check=True)
        said = json.loads((folder / "answers.json").read_text())
    return Answers(
        {one.key: nothing(one) if found is None else np.array(found) for one, found in zip(rounds, said, strict=True)},
        without_model=[one.key for one, found in zip(rounds, said, strict=True) if found is None],
    )


def _python() -> Path:
    return Path(os.environ[VARIABLE], "bin", "python")
