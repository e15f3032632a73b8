"""What a Tune trial is to do: work through a batch, train one trial of a spread study, or conclude such a study.

A job is the configuration of its Tune trial. It says what its worker takes of the cluster, too, since a run's batches
and trials are Tune trials of one trainable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from search_spaces.values import own_copy
from tuning.definition.options import Resources
from tuning.models.worker_group import PACK, ActorGroup, WorkerGroup
from tuning.notes import Note
from tuning.planning.capacity import Bundle, Request
from tuning.planning.worker_groups import largest_group
from tuning.records.schema import FINISHED, TrialRecord
from tuning.study.interfaces import Configuration

if TYPE_CHECKING:
    from ray.tune import PlacementGroupFactory

    from tuning.study.study import Study
    from tuning.study.trial import Trial

JOB = "job"  # the key of a Tune trial's configuration that holds it


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a Tune trial is to do.

    Attributes:
        bundles: what it takes: a bundle for its own process, and one for each process that works for it.
        strategy: where Ray puts them.
    """

    bundles: Sequence[Bundle]
    strategy: str = PACK

    @property
    def subject(self) -> str:
        """What reasons call it."""
        return "a worker"

    @property
    def shown(self) -> str:
        """What messages call it."""
        return self.subject

    @property
    def request(self) -> Request:
        """Its bundles and their strategy, as `Capacity` asks for them."""
        return self.bundles, self.strategy

    @property
    def cpus(self) -> float:
        """Of all of its processes."""
        return sum(bundle.get("CPU", 0.0) for bundle in self.bundles)

    def to_config(self) -> dict[str, object]:
        """Return the configuration of its Tune trial."""
        return {JOB: self}


@dataclass(frozen=True, kw_only=True)
class BatchJob(Job):
    """Work through a batch. batch: its number."""

    batch: int

    @classmethod
    def from_resources(cls, batch: int, needs: Resources, helpers: int = 0) -> Self:
        """needs: what its worker takes. helpers: how many it has; each takes the same, the first with the worker."""
        return cls(batch=batch, bundles=[needs.to_bundle()] * max(1, helpers))


@dataclass(frozen=True, kw_only=True)
class TrialJob(Job):
    """Train one trial of a spread study.

    Attributes:
        study: its id.
        trial: the trial's number.
        config: its configuration.
        checkpoint: from which it goes on, a path in the run directory; None from its beginning.
    """

    study: str
    trial: int
    config: Configuration
    checkpoint: str | None = None

    @property
    def subject(self) -> str:
        return "the trial"

    @property
    def shown(self) -> str:
        return f"a trial of {self.study!r}"

    @classmethod
    def from_trial(
        cls, study: Study, trial: Trial, checkpoint: str | None = None, worker_group: WorkerGroup | None = None
    ) -> TrialJob:
        """Return the job of a trial of a study.

        worker_group: what trains it, where several processes do. For workers of a trainer the trial's own process only
        waits, so what it would take is for Ray Data.
        """
        return cls(
            study=study.id,
            trial=trial.number,
            config=own_copy(trial.config),
            checkpoint=checkpoint,
            bundles=[
                *([{}] if worker_group and worker_group.idle_driver else []),
                study.resources.to_bundle(),
                *(worker_group.bundles if worker_group else []),
            ],
            strategy=worker_group.strategy if worker_group else PACK,
        )


@dataclass(frozen=True)
class EndedStudy:
    """A study after its trials.

    Attributes:
        ended_by, failure: see `conclude_study`.
        crashed: what has ended the study's workers too often, such as "trial 3"; None where nothing has.
        error: what is known of that.
    """

    study: Study
    records: Sequence[TrialRecord]
    ended_by: Note | None = None
    failure: Note | None = None
    crashed: str | None = None
    error: str | None = None

    @property
    def fits(self) -> bool:
        """Whether a model is to be fitted."""
        known = self.study.fixed is not None
        return self.failure is None and (known or any(trial.state == FINISHED for trial in self.records))


@dataclass(frozen=True, kw_only=True)
class FitJob(Job):
    """Conclude a spread study: choose its winner, fit and save its model.

    worker_group: fits it, where several processes do.
    """

    ended: EndedStudy
    worker_group: ActorGroup | None = None

    @property
    def subject(self) -> str:
        return "its last fit"

    @property
    def shown(self) -> str:
        return f"the last fit of {self.ended.study.id!r}"

    @classmethod
    def from_study(cls, ended: EndedStudy, *, worker_groups: bool) -> FitJob:
        """worker groups: whether several processes train some of the run's models."""
        worker_group = largest_group([ended.study.space]) if worker_groups and ended.fits else None
        needs = ended.study.resources if ended.fits else Resources()
        return cls(
            ended=ended,
            worker_group=worker_group,
            bundles=[needs.to_bundle(), *(worker_group.bundles if worker_group else [])],
        )


def job_in(config: Mapping[str, object]) -> Job:
    """Return the job in a Tune trial's configuration."""
    found = config[JOB]
    assert isinstance(found, Job)
    return found


def placement_group(config: Mapping[str, object]) -> PlacementGroupFactory:
    """Return what a Tune trial takes, as `tune.with_resources` wants it."""
    from ray import tune

    job = job_in(config)
    return tune.PlacementGroupFactory([dict(bundle) for bundle in job.bundles], strategy=job.strategy)
