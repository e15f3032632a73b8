"""What the tests of the commands share: customers, a definition over them, and a finished run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import FAST, tuning
from made_up import make_customer


@pytest.fixture(scope="session")
def customers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "customers"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name in ("acme", "beta"):
        make_customer(rng, 120).to_csv(folder / f"{name}.csv", index=False)
    make_customer(rng, 3).to_csv(folder / "tiny.csv", index=False)
    return folder


@pytest.fixture(scope="session")
def definition(customers: Path) -> Path:
    path = customers.parent / "churn.yaml"
    path.write_text("data: customers\ntarget: churned\nscheduler: {name: asha, reduction_factor: 3}\n")
    return path


@pytest.fixture(scope="session")
def finished(definition: Path) -> Path:
    folder = definition.parent / "run"
    answer = tuning("run", definition, "--run-dir", folder, *FAST)
    assert answer.exit_code == 3, answer.output
    return folder
