"""A body that is larger than what is taken is refused, whether it says its length or not."""

from __future__ import annotations

import pytest
from service_app import bearer
from starlette.testclient import TestClient

from tuning.service.service import Service


@pytest.mark.parametrize("announced", [True, False], ids=["announced", "unannounced"])
def test_a_body_that_is_too_large_is_refused_and_makes_no_run(
    web: TestClient, service: Service, announced: bool
) -> None:
    headers = {**bearer(service), "Content-Type": "application/json"}
    piece = b" " * 2**16
    pieces = service.settings.body_bytes // len(piece) + 1
    body = piece * pieces if announced else (piece for _ in range(pieces))
    refused = web.post("/api/v1/runs", content=body, headers=headers)
    assert refused.status_code == 413
    assert "The body is larger than" in refused.json()["detail"]
    assert sum(service.runs.counts().values()) == 0
