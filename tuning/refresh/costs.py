"""About what a refresh costs, by what the fits and trials of earlier runs of the champions have taken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.wording import amount
from tuning.champions.releases import Releases
from tuning.errors import RunError, StorageError
from tuning.records.ownership import begun_term
from tuning.records.parts import STUDIES, accepted, read_table

LOOKED_AT = 8  # releases, the newest ones


@dataclass(frozen=True)
class RefreshCosts:
    """Core-seconds, on average over customers; None where no run is left that tells them.

    fit: of one configuration on all rows of a customer. trial: of a search, with the ending of its study shared out.
    """

    fit: float | None
    trial: float | None

    @classmethod
    def of(cls, releases: Releases) -> RefreshCosts:
        """As the newest runs of these champions tell them."""
        fit = trial = None
        for studies in _studies(releases):
            searches = pc.greater(studies["trials"], 0)
            fits = studies.filter(pc.and_(pc.invert(searches), pc.is_valid(studies["model_path"])))
            searched = studies.filter(searches)
            if fit is None and len(fits):
                fit = pc.mean(fits["fit_seconds"]).as_py()
            if trial is None and len(searched):
                trial = pc.sum(searched["fit_seconds"]).as_py() / pc.sum(searched["trials"]).as_py()
            if fit is not None and trial is not None:
                break
        return cls(trial if fit is None else fit, trial)  # a first refresh knows trials alone; most are several fits

    def seconds(self, fits: int, trials: int) -> float | None:
        """Core-seconds of so many."""
        if self.fit is None or (trials and self.trial is None):
            return None
        return fits * self.fit + trials * (self.trial or 0.0)


@dataclass(frozen=True)
class GroupWork:
    """What is done for the customers of a group. core_seconds: about what it costs; None where nothing tells it."""

    fits: int
    trials: int
    core_seconds: float | None

    @property
    def text(self) -> str:
        """It in words."""
        said = [amount(self.fits, "fit")] * bool(self.fits) + [amount(self.trials, "trial")] * bool(self.trials)
        about = "" if self.core_seconds is None else f", about {seconds_text(self.core_seconds)}"
        return f"{' and '.join(said)}{about}"


def seconds_text(seconds: float) -> str:
    """Core-seconds in words."""
    return f"{seconds:,.{0 if seconds >= 10 else 1}f} core-seconds"


def _studies(releases: Releases) -> Iterator[pa.Table]:
    """What is recorded of the studies of each release's run, the newest first."""
    for release in releases.last(LOOKED_AT):
        if release.run is None:
            continue
        with suppress(RunError, StorageError):  # pruned, or moved away
            directory = releases.run_directory(release.run)
            parts = accepted(directory, begun_term(directory))[::-1]
            yield read_table(directory, parts, STUDIES, ["study", "status", "trials", "fit_seconds", "model_path"])
