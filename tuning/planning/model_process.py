"""The user's own models in a child process, for a look at them before a run: one may hang there, or end its process."""

from __future__ import annotations

from collections.abc import Callable

from tuning.data.child_process import ChildProcess
from tuning.errors import NotLookedAtError
from tuning.user_code import exits_raised


class ModelProcess(ChildProcess):
    """Tries models in a child process; a context manager that ends it.

    Attributes:
        seconds: how long it may take for one model.
        here: try models in this process, for a debugger.
        lost: why models could not be tried, by name. A run has them all the same: made-up rows prove nothing.
    """

    def __init__(self, seconds: float, here: bool = False) -> None:
        super().__init__()
        self.seconds, self.here = seconds, here
        self.lost: dict[str, str] = {}

    def tried(self, name: str, function: Callable[..., object], *given: object) -> None:
        """Call a function that tries the model of this name, and raises what is wrong with it."""
        if self.here:
            with exits_raised():
                function(*given)
            return
        if name in self.lost:
            return
        try:
            self.call("it", self.seconds, function, *given)
        except NotLookedAtError as error:
            self.lost[name] = str(error)

    @property
    def notes(self) -> list[str]:
        """Sentences on models that could not be tried."""
        return [f"the model {name!r} could not be tried before the run: {why}." for name, why in self.lost.items()]
