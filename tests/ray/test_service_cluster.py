"""A server whose runs work on a Ray cluster: its slots are those of the nodes that are alive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import definition, write_customers
from chaos import wait_for
from cluster_process import ClusterProcess

from tuning.service.children import Children
from tuning.service.database import schema
from tuning.service.database.connection import Database
from tuning.service.database.runs import Runs, Submission
from tuning.service.settings import ServiceSettings
from tuning.service.states import RunState
from tuning.service.supervisor.slots import Slots
from tuning.service.supervisor.supervisor import Supervisor

pytestmark = pytest.mark.ray


@pytest.fixture
def cluster() -> Iterator[ClusterProcess]:
    made = ClusterProcess()
    yield made
    made.end()


@pytest.mark.slow
def test_a_cluster_of_three_nodes_is_divided_anew_when_it_grows_and_loses_a_node(
    cluster: ClusterProcess, tmp_path: Path
) -> None:
    write_customers(tmp_path / "data", 2)
    database = Database(f"sqlite:///{tmp_path}/service.db")
    schema.upgrade(database)
    (tmp_path / "elsewhere.csv").write_bytes((tmp_path / "data" / "c0000.csv").read_bytes())
    (tmp_path / "data" / "link.csv").symlink_to(tmp_path / "elsewhere.csv")
    settings = ServiceSettings(
        database="x",
        storage=str(tmp_path / "runs"),
        work=tmp_path / "work",
        data=(str(tmp_path / "data"),),
        ray_address=cluster.address,
    )
    supervisor, runs, news = Supervisor(database, settings, Children()), Runs(database), []
    slots = Slots(settings, Children(), lambda: news.append(slots()), lambda: 0.0)
    assert slots() is None
    slots.ask()
    cluster.say("add")
    slots.ask()
    cluster.say("remove")
    cluster.say("remove")
    wait_for(lambda: slots.ask() or slots() == 2, 120, "the loss of two nodes")
    assert news[:2] == [3, 4]
    assert supervisor.unhealthy_reason() == "The Ray cluster does not answer, so no run begins."
    fields = {key: value for key, value in definition(tmp_path / "data").items() if key != "slots"}
    supervisor.start()
    run = supervisor.requests.submit(Submission("churn", "week", fields), 1.0)
    supervisor.wake()
    wait_for(lambda: runs.get(run.id).state is not RunState.QUEUED, 120, "its beginning")
    assert runs.get(run.id).slots == 2
    wait_for(lambda: runs.get(run.id).state is not RunState.RUNNING, 400, "its end")
    supervisor.close()
    assert runs.get(run.id).reason == "2 of 3 customers have a model"  # workers on the cluster know the roots
    cluster.end()
    slots.ask()
    assert slots() is None
    database.close()
