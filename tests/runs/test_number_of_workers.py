"""More workers find the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import definition, write_customers
from chaos import truth

from tuning import TuneRunner


def test_the_number_of_workers_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More workers are more batches: other neighbours, another order. Beside each other they run in test_crashes.py."""
    monkeypatch.setattr("tuning.data.balancing.BATCHES_PER_SLOT", 1)
    write_customers(tmp_path / "data", 5)
    found = []
    for slots in (1, 2, 5):
        runner = TuneRunner(**definition(tmp_path / "data", slots=slots, algorithm="optuna", trials=6))
        found.append(
            (len(runner.plan().batches), truth(runner.run(str(tmp_path / f"{slots}"), in_process=True, progress=False)))
        )
    assert [batches for batches, _ in found] == [1, 2, 5]
    assert found[0][1] == found[1][1] == found[2][1]
