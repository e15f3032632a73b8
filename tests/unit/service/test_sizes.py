"""The size of a run's directory counts for its team's quota once the run has ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from chaos import wait_for
from supervised import Supervised

from tuning.errors import QuotaError
from tuning.service.database.connection import Database
from tuning.service.settings import GB, Quotas, Team
from tuning.service.states import RunState


@pytest.mark.long
def test_a_teams_runs_fill_its_storage(database: Database, tmp_path: Path) -> None:
    server = Supervised(database, tmp_path, f"mkdir -p {tmp_path}/runs/churn; cp -r {tmp_path}/large $RUN")
    teams = {"churn": Team(quotas=Quotas(storage_gb=3000 / GB))}
    server.settings = server.settings.model_copy(update={"teams": teams})
    server.again()
    (tmp_path / "large" / "models").mkdir(parents=True)
    for name in ("a", "models/b"):
        (tmp_path / "large" / name).write_bytes(b"x" * 1500)
    run = server.submit()
    server.look_until(run, RunState.FINISHED)
    wait_for(lambda: server.get(run).bytes, what="its measure")
    assert server.get(run).bytes == 3000
    with pytest.raises(QuotaError, match="Delete some that have ended"):
        server.submit()
