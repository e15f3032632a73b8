"""The user's own models in a child process, for a look at them before a run: one may hang there, or end its process."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tuning.basics.timing import HANG_S
from tuning.data.child_process import ChildProcess
from tuning.errors import NotLookedAtError, PlanError
from tuning.models.entries import ModelEntry, own_families
from tuning.notes import Note, PlanCode
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
        self.lost: dict[str, Note] = {}

    def check_built(self, models: Iterable[ModelEntry]) -> None:
        """`PlanError` where a model's file or constructor takes too long or ends its process; each run would meet it.

        What else is wrong with them is said where they are built.
        """
        for entry in models:
            if self.here or entry.built_in or not isinstance(entry.estimator, str):
                continue
            try:
                self.call("loading scikit-learn", HANG_S, _load)  # which is not the model's doing
                self.call("building it", self.seconds, _build, entry)
            except NotLookedAtError as error:
                raise PlanError(
                    f"models: {entry.name!r} cannot be built: {error}. Its file and its constructor may prepare, and "
                    "not work; work belongs into fit."
                ) from error

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
            self.lost[name] = error.note

    @property
    def notes(self) -> list[Note]:
        """Notes on models that could not be tried."""
        return [PlanCode.MODEL_NOT_TRIED(name, why=why) for name, why in self.lost.items()]


def _load() -> None:
    """In the child."""
    import sklearn.linear_model  # noqa: F401  # for the time that it takes


def _build(entry: ModelEntry) -> None:
    """In the child."""
    with exits_raised():
        own_families([entry])
