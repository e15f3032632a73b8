"""Where the worker group of a trial works: the placement group of the trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuning.basics.wording import amount
from tuning.errors import RunError
from tuning.models.worker_group import ActorGroup

if TYPE_CHECKING:
    from ray.util.placement_group import PlacementGroup


@dataclass(frozen=True)
class RayPlace:
    """Where a worker group works.

    Attributes:
        group: the placement group: this process is in its first bundle, the actors are in those behind.
        uri: of the run directory, which all nodes reach.
        folder: for shards, in it.
        patience_s: for which an actor's start is waited for.
    """

    group: PlacementGroup
    uri: str
    folder: str
    patience_s: float

    def no_start(self, missing: int, worker_group: ActorGroup) -> RunError:
        """Return why a training ends if its actors do not start."""
        return RunError(
            f"{missing} of {amount(worker_group.actors, 'actor')} did not start within {self.patience_s:g} s: there is "
            "no room for them, or their machine is too busy."
        )
