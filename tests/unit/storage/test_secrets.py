"""A password in a URI is seen by nobody: not in logs, messages, records, reports or MLflow."""

from __future__ import annotations

import pytest

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
