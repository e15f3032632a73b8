"""However a customer's code ends its process, with a status of 0, too: it is put aside, and nobody else is lost."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from builders import definition, write_customers

from tuning import TuneRunner

CODE = """
import os, signal

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error

ENDINGS = (lambda: os._exit(0), lambda: os._exit(1), lambda: os.kill(os.getpid(), signal.SIGKILL))


def end(place, values):
    if int(np.max(values)) // 100 == place:
        ENDINGS[int(np.max(values)) % 100]()


def prepare(rows):
    end(1, rows["y"])
    return rows


def score(y_true, y_pred):
    end(2, y_true)
    return mean_absolute_error(y_true, y_pred)


class Model(Ridge):
    def fit(self, X, y, sample_weight=None):
        end(3, y)
        return super().fit(X, y, sample_weight)


def objective(config, data):
    end(4, data["y"])
    return (config["x"] - 1) ** 2
"""
SPACE = {"x": {"type": "float", "low": -2.0, "high": 2.0}}
PLACES = {"models": (1, 2, 3), "objective": (4,)}


def fields_of(work: str, file: str) -> dict[str, Any]:
    """Of a definition whose code is in a file."""
    if work == "objective":
        own = {"objective": f"{file}:objective", "metric": "loss", "target": None, "task": "auto"}
        return {**own, "search_space": SPACE}
    own = {"prepare": f"{file}:prepare", "metric": f"{file}:score", "save_models": False, "search_space": None}
    return {**own, "models": {"mine": f"{file}:Model"}}


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("placement", ["packed", "spread"])
@pytest.mark.parametrize("work", PLACES)
def test_on_ray_each_of_them_is_put_aside_and_the_others_have_a_result(
    ray_cluster: None, tmp_path: Path, work: str, placement: str
) -> None:
    (tmp_path / "mine.py").write_text(CODE)
    bad = list(itertools.product(PLACES[work], range(3)))
    write_customers(tmp_path / "data", len(bad) + 2)
    for number, (place, ending) in enumerate(bad):
        file = tmp_path / "data" / f"c{number:04d}.csv"
        file.write_text(file.read_text() + f"0,0,0,{100 * place + ending}\n" * 5)
    fields = {"mode": "min", "trials": 2, "placement": placement, "limits": {"crashes_before_quarantine": 1}}
    given = definition(tmp_path / "data", **fields, **fields_of(work, f"{tmp_path}/mine.py"))
    result = TuneRunner(**given).run(tmp_path / "run", progress=False)
    assert result.unfinished == 0
    board = result.leaderboard().set_index("customer").sort_index()
    assert list(board["status"]) == ["quarantined"] * len(bad) + ["ok"] * 2
    assert board["reason"].str.contains("has ended its worker 1 time").sum() == len(bad)
