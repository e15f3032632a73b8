"""A password in a URI is seen by nobody: not in logs, messages, records, reports or MLflow."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from chaos import definition, write_customers

from tuning import TuneRunner
from tuning.definition.definition import define
from tuning.errors import TuningError
from tuning.storage.names import mask, mask_in

QUIET = {"progress": False, "in_process": True}
CANARY = "a-password-that-nobody-may-see"


@pytest.mark.parametrize(
    "uri",
    [
        f"s3://id:{CANARY}@bucket/x",
        f"s3://id:{CANARY.replace('-', '%2F')}@bucket/x?region=eu",
        f"postgresql+psycopg://me:{CANARY}@host:5432/mlflow",
        f"https://{CANARY}@host/path",
        f"https://host/x?token={CANARY}&a=1",
        f"https://host/x?X-Amz-Signature={CANARY}",
        f"s3://bucket/x?secret_key={CANARY}&scheme=http",
        f"https://me:{CANARY}@host/a@b",
    ],
)
def test_secrets_in_uris_are_masked(uri: str) -> None:
    secret = CANARY.replace("-", "%2F")
    for shown in (mask(uri), mask_in(f"it said '{uri}', and: {uri}."), mask_in(f"({uri})")):
        assert CANARY not in shown
        assert secret not in shown
        assert "***" in shown


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


def test_a_refused_definition_shows_no_secret() -> None:
    for fields in (
        {"data": f"s3://id:{CANARY}@bucket/*.csv", "target": "y", "storag": "x"},
        {"data": f"no-such-scheme://id:{CANARY}@bucket/*.csv", "target": "y"},
        {"data": "x.csv", "target": "y", "mlflow": {"tracking_uri": f"postgresql://me:{CANARY}@h/d", "trackin": 1}},
        {"data": "x.csv", "target": "y", "storage": [f"s3://id:{CANARY}@bucket/runs"]},
        {"data": {"a": {"path": f"s3://id:{CANARY}@bucket/x.csv", "wrong": 1}}, "target": "y"},
    ):
        with pytest.raises(TuningError) as refusal:
            TuneRunner(define(fields)).plan()
        assert CANARY not in str(refusal.value)
