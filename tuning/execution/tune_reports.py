"""How reports of workers travel through Tune: each is one value of what Tune takes for a trial's metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias, get_args

from tuning.execution.reports import WorkerReport

if TYPE_CHECKING:
    from ray import tune

REPORT = "report"  # the key of the value
#: What Tune hands to callbacks and schedulers.
TuneResult: TypeAlias = Mapping[str, object]


def report_to_tune(report: WorkerReport, checkpoint: tune.Checkpoint | None = None) -> None:
    """Report from a worker of Tune's. checkpoint: what goes with it."""
    from ray import tune

    tune.report({REPORT: report}, checkpoint=checkpoint)


def report_in(result: TuneResult) -> WorkerReport | None:
    """The report that Tune hands on; None where it speaks for itself."""
    found = result.get(REPORT)
    return found if isinstance(found, get_args(WorkerReport)) else None
