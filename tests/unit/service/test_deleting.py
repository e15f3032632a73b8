"""A submitted run is deleted with its directory, unless a process still works on that."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tuning.errors import MissingError, RefusedChangeError
from tuning.records.lease import Lease
from tuning.records.ownership import claim
from tuning.service.database.runs import Submission
from tuning.service.service import Service
from tuning.storage.run_directory import RunDirectory


def test_a_run_whose_process_still_works_is_kept(service: Service) -> None:
    run, _ = service.requests.submit(Submission("churn", "week", {"target": "y"}), 1.0)
    service.requests.cancel(service.runs, run.id, "churn", 2.0) if False else None
    directory = RunDirectory(run.run_directory)
