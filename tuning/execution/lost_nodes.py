"""What Ray says of machines and workers that are gone. Tune waits without an end or a word when all machines are."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tuning.basics.wording import amount

if TYPE_CHECKING:
    from ray.tune.experiment import Trial

LOOK_EVERY_S = 5.0
PATIENCE_S = 15.0  # a cluster that restarts, or one whose last machine is being replaced


class MachinesLostError(Exception):
    """No machine of the cluster is alive."""


@dataclass
class NodeWatch:
    """Looks now and then; `check` is cheap enough to be called at every step of Tune's loop."""

    every: float = LOOK_EVERY_S
    patience: float = PATIENCE_S
    _next: float = field(default_factory=time.monotonic)
    _gone_since: float | None = None

    def check(self) -> None:
        """Raise `MachinesLostError` when no machine has been alive for a while."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self.every
        if any_alive():
            self._gone_since = None
        elif self._gone_since is None:
            self._gone_since = now
        elif now - self._gone_since >= self.patience:
            raise MachinesLostError(
                f"no machine of the Ray cluster has been alive for {amount(self.patience, 'second')}"
            )


def worker_died(text: str) -> bool:
    """Whether Tune's words on why a trial ended are of a process that died, and not of an exception in it (its code
    could not be loaded, say): those come with the lines of a stack."""
    return '  File "' not in text


def error_text(trial: Trial) -> str:
    """What Tune has written down of a trial's last error; empty when that is nothing."""
    try:
        return Path(trial.error_file).read_text(encoding="utf-8", errors="replace")
    except (OSError, TypeError):
        return ""


def any_alive() -> bool:
    """True as long as Ray itself answers, and calls one of its machines alive."""
    import ray

    try:
        return any(node["Alive"] for node in ray.nodes())
    except Exception:  # its head does not answer
        return False
