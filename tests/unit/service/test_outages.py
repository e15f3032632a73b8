"""Runs that fail alike are one outage: the queue waits, one run is tried, and nobody loses a try by it."""

from __future__ import annotations

from pathlib import Path

import pytest
from chaos import wait_for
from supervised import Supervised

from tuning.errors import DiskFullError, HeadLostError, RayUnavailableError, StorageError, code_of
from tuning.service.database.connection import Database
from tuning.service.states import RunState
from tuning.service.supervisor.outages import PAUSES_S, SHARED, WORKS_S

pytestmark = pytest.mark.long
FINE = """echo '{"customers": 1, "succeeded": 1}'"""


def fails(code: str, while_there: str) -> str:
    """A driver that fails with a code as long as a file is there."""
    return f"""if [ -e {while_there} ]; then echo '{{"reason": "it fails", "code": "{code}"}}'; exit 1; fi; {FINE}"""


def later(server: Supervised, seconds: float) -> None:
    """Both clocks go on: a run that is begun again at the same moment would be taken for one that is at work."""
    server.later, server.now = server.later + seconds, server.now + seconds


def all_ended(server: Supervised, runs: list[str]) -> bool:
    server.supervisor.look()
    return {server.get(run).state for run in runs} == {RunState.FINISHED}


def held(server: Supervised, runs: list[str]) -> bool:
    """Whether no run works and the queue waits."""
    server.supervisor.look()
    return "The queue waits" in (server.supervisor.unhealthy_reason() or "") and all(
        server.get(run).state is RunState.QUEUED for run in runs
    )


def test_the_codes_are_those_of_errors() -> None:
    errors = (DiskFullError(), StorageError(), RayUnavailableError(), HeadLostError())
    assert {*map(code_of, errors), "not_started"} == {*SHARED}


@pytest.mark.parametrize(("code", "slots"), [("disk_full", 1), ("disk_full", 4), ("storage", 2), ("head_lost", 2)])
def test_an_outage_holds_the_queue_costs_no_tries_and_all_go_on_after_it(
    database: Database, tmp_path: Path, code: str, slots: int
) -> None:
    (outage := tmp_path / "outage").touch()
    server = Supervised(database, tmp_path, fails(code, str(outage)), slots=slots)
    runs = [server.submit() for _ in range(12)]
    wait_for(lambda: held(server, runs), what="the hold")
    begun = server.starts()
    assert begun <= slots + 1
    for pause in (*PAUSES_S, PAUSES_S[-1]):
        later(server, pause - 1)
        assert held(server, runs)
        assert server.starts() == begun
        assert SHARED[code] in (server.supervisor.unhealthy_reason() or "")
        later(server, 1)
        wait_for(lambda begun=begun: held(server, runs) and server.starts() > begun, what="a try")
        begun += 1
        assert server.starts() == begun
    outage.unlink()
    later(server, PAUSES_S[-1])
    wait_for(lambda: all_ended(server, runs), what="their ends")
    assert sum(server.get(run).attempts for run in runs) <= 1
    assert "The queue waits" not in (server.supervisor.unhealthy_reason() or "")


def test_a_run_that_is_tried_and_works_on_lets_the_others_go(database: Database, tmp_path: Path) -> None:
    (outage := tmp_path / "outage").touch()
    works = f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; {FINE}"
    server = Supervised(database, tmp_path, fails("disk_full", str(outage)).replace(FINE, works), slots=4)
    runs = [server.submit() for _ in range(4)]
    wait_for(lambda: held(server, runs), what="the hold")
    outage.unlink()
    begun = server.starts()
    for wait in (PAUSES_S[0], 0.0, WORKS_S - 1):
        later(server, wait)
        server.supervisor.look()
        states = [server.get(run).state for run in runs]
        assert states.count(RunState.RUNNING) == 1
    assert "is tried now" in (server.supervisor.unhealthy_reason() or "")
    later(server, 1)
    server.supervisor.look()
    assert {server.get(run).state for run in runs} == {RunState.RUNNING}
    wait_for(lambda: server.starts() == begun + 4, what="their beginnings")
    (tmp_path / "go").touch()
    wait_for(lambda: all_ended(server, runs), what="their ends")


@pytest.mark.parametrize("code", ["machine", "unexpected", "", "storage"])
def test_what_is_a_runs_own_matter_costs_its_tries_and_holds_nobody(
    database: Database, tmp_path: Path, code: str
) -> None:
    """Of a shared code, where nobody else fails by it; of others, however many do."""
    alone = 'case "$RUN" in *"$(cat ' + f'{tmp_path}/bad)") ' + fails(code, "/") + f";; *) {FINE};; esac"
    (tmp_path / "bad").write_text("none")
    server = Supervised(database, tmp_path, alone, slots=1)
    bad = server.submit()
    (tmp_path / "bad").write_text(bad)
    others = list[str]()
    for tries, pause in enumerate(PAUSES_S, 1):
        others.append(server.submit())
        wait_for(lambda tries=tries: server.look(bad).attempts == tries, what="a try")
        wait_for(lambda: all_ended(server, others), what="the other runs")
        server.now += pause
    assert server.look_until(bad, RunState.FAILED).attempts == 3


def test_an_outage_in_which_nobody_waits_is_over(database: Database, tmp_path: Path) -> None:
    """Else a balancer that goes by /readyz would let nobody in who could show that."""
    (outage := tmp_path / "outage").touch()
    server = Supervised(database, tmp_path, fails("disk_full", str(outage)), slots=2)
    runs = [server.submit(), server.submit()]
    wait_for(lambda: held(server, runs), what="the hold")
    for run in runs:
        server.supervisor.requests.cancel(run, "churn", server.now)
    later(server, PAUSES_S[0])
    server.supervisor.look()
    assert "The queue waits" not in (server.supervisor.unhealthy_reason() or "")


def test_a_folder_without_room_for_a_process_is_an_outage(database: Database, tmp_path: Path) -> None:
    server = Supervised(database, tmp_path, FINE, slots=1)
    server.settings.work.write_text("in the way")
    runs = [server.submit() for _ in range(3)]
    server.supervisor.look()
    assert held(server, runs)
    server.settings.work.unlink()
    later(server, PAUSES_S[0])
    wait_for(lambda: all_ended(server, runs), what="their ends")
