"""A password in a URI is seen by nobody: not in a run's logs, records or reports, nor in MLflow."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from builders import definition, write_customers

from tuning import TuneRunner

QUIET = {"progress": False, "in_process": True}


CANARY = "a-password-that-nobody-may-see"


def test_no_secret_is_in_logs_records_reasons_or_mlflow(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], mlflow_database: str
) -> None:
    """Customers whose data is behind a password, and an MLflow whose database is too."""
    caplog.set_level(logging.DEBUG)
    write_customers(tmp_path / "data", 1)
    data = {
        "good": str(tmp_path / "data" / "c0000.csv"),
        "scheme": f"no-such-scheme://id:{CANARY}@bucket/x.csv",
        "https": f"https://me:{CANARY}@127.0.0.1:9/x.csv?token={CANARY}",
    }
    fields = {**definition(tmp_path, trials=2), "data": data}
    result = TuneRunner(**{**fields, "mlflow": {"tracking_uri": mlflow_database}}).run(str(tmp_path / "run"), **QUIET)
    board = result.leaderboard().set_index("customer")
    assert dict(board["status"]) == {"good": "ok", "scheme": "no_model", "https": "no_model"}
    shown = board.to_csv() + result.trials().to_csv() + repr(result) + result._repr_html_()
    shown += repr([record.error for record in result.study_records])
    said = capfd.readouterr()
    assert CANARY not in shown + said.out + said.err + caplog.text
    for path in [*(tmp_path / "run" / "records").rglob("*.parquet"), Path(mlflow_database.removeprefix("sqlite:///"))]:
        assert CANARY not in _texts(path), path


def _texts(path: Path) -> str:
    """Everything in a Parquet file or a database, as text."""
    if path.suffix == ".parquet":
        import pandas as pd

        return str(pd.read_parquet(path).to_csv())
    import sqlite3

    with sqlite3.connect(path) as database:
        return "\n".join(database.iterdump())
