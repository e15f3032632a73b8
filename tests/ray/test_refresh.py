"""A refresh whose fits and searches are done by Ray's workers."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
from shop_weeks import NAME, ShopWeeks, rows

from tuning import RunResult, TuneRunner
from tuning.definition.definition import Definition
from tuning.planning.studies import Fixed
from tuning.serving.models import ReleaseModels
from tuning.serving.refresh import Refresh
from tuning.storage.run_directory import RunDirectory


def test_a_refresh_on_ray_serves_what_one_in_this_process_does(ray_cluster: None, tmp_path: Path) -> None:
    here = ShopWeeks.begun(tmp_path / "here", ["grown", "more", "same"], name=NAME)
    there = here.copied(tmp_path / "there")
    for weeks in (here, there):
        weeks.write("grown", rows(0, 90))  # is searched for
        weeks.write("more", rows(1, 63))  # is fitted again
    here.refresh(search_every=99)
    there.fields |= {"placement": "packed", "report": True}

    def on_ray(definition: Definition, fixed: Fixed, folder: str) -> RunDirectory:
        return TuneRunner(definition, fixed=fixed).run(folder, progress=False, resume=True).directory

    Refresh(there.plan(search_every=99), there.releases, on_ray).run()
    champions = [weeks.state() for weeks in (here, there)]
    run = RunResult(there.releases.run_directory(champions[1]["more"].run).shown)
    assert {record.customer for record in run.trial_records} == {"grown"}
    assert json.loads(run.directory.read("progress.json"))["noun"] == "study"  # some customers have several
    assert not run.directory.exists("report.html")  # it would praise models that do not serve
    assert not any(record.worker.endswith(f":{os.getpid()}") for record in run.trial_records)
    for name in ("grown", "more", "same"):
        served, other = (each[name] for each in champions)
        assert (served.configuration, served.since, served.digest) == (
            other.configuration, other.since, other.digest,
        )  # fmt: skip
        models = [ReleaseModels(NAME, str(weeks.folder / "runs"), 2).of(name).model for weeks in (here, there)]
        new = rows(9, 50)
        assert np.array_equal(models[0].predict(new), models[1].predict(new))
