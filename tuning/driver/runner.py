"""`TuneRunner` runs a definition and gives its results, or its `tune.Tuner`; `tune(X, y)` does so for one data set."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Unpack, overload

import pandas as pd

from tuning.basics.public import Public, is_interactive, wait_notice
from tuning.basics.timing import USUAL
from tuning.basics.wording import resume_advice
from tuning.definition.definition import Definition
from tuning.definition.given import changed, definition_arguments, definition_of, keys_help, signature
from tuning.definition.keywords import DefinitionKeys
from tuning.definition.yaml_file import read_definition
from tuning.driver.background import RunHandle, check_free
from tuning.driver.display import in_notebook, style_of
from tuning.driver.hosts.ray import RayHost
from tuning.driver.log_capture import held_messages, write_held
from tuning.driver.session import RunSession
from tuning.driver.signals import Signals
from tuning.errors import DataError, DefinitionError, PlanError, RunError, RunInterrupted, signal_name
from tuning.planning.plan import make_plan
from tuning.planning.run_plan import Plan
from tuning.planning.studies import NONE_FIXED, Fixed
from tuning.preprocessing.shapes import ColumnLike, FrameLike, paired
from tuning.records.ownership import newest_term
from tuning.runs.begin import OwnedRun, abandon, begin, resume_run
from tuning.runs.plan_file import frozen_definition
from tuning.runs.results import RunResult
from tuning.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    from ray.tune import Tuner

IN_A_TABLE = "use TuneRunner(data=frame, target='column').run(), which also takes background=True"


class TuneRunner(Public):
    """Finds the best model for every customer of a definition.

    >>> runner = TuneRunner(data="customers/*.csv", target="churned", trials=40)   # doctest: +SKIP
    >>> runner.plan()      # what would run, and where
    >>> result = runner.run()
    >>> result.leaderboard()

    definition: a `Definition`, or a mapping of its keys. fields: keys one by one, named as in a YAML file. A field
    replaces the definition's own key. fixed: configurations by customer, such as `RunResult.fixed_configurations` of an
    earlier run: each of these customers gets a model with its configuration, fitted once on all rows, and no search.
    """

    __signature__ = signature()
    public = ("definition", "from_yaml", "plan", "tuner", "run", "resume")
    elsewhere: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("fit", "search", "optimize", "optimise", "tune", "train", "start"), "run()"),
        **dict.fromkeys(("predict", "best_model", "model"), "run().model(), which predicts"),
        **dict.fromkeys(("best_params", "best_config"), "run().best_config()"),
        **dict.fromkeys(("leaderboard", "trials", "results"), "what run() gives back"),
    }

    def __init__(
        self,
        definition: Definition | Mapping[str, object] | None = None,
        *,
        fixed: Fixed = NONE_FIXED,
        **fields: Unpack[DefinitionKeys],
    ) -> None:
        self.definition = definition_of(definition, fields)
        self.fixed = fixed
        self.timing = USUAL

    def __repr__(self) -> str:
        return f"TuneRunner({definition_arguments(self.definition)})"

    @classmethod
    def from_yaml(cls, path: str | Path, **overrides: Unpack[DefinitionKeys]) -> TuneRunner:
        """A runner of the definition in a YAML file. overrides: keys that replace the file's."""
        return cls(read_definition(path, overrides))

    def plan(self) -> Plan:
        """What would run, and where. Neither Ray nor MLflow is imported; messages of libraries that your code loads are
        hidden."""
        with wait_notice("looking at the data"), held_messages():
            return make_plan(self.definition, timing=self.timing, fixed=self.fixed)

    def tuner(self, run_dir: str | Path | None = None) -> Tuner:
        """The `tune.Tuner` of the definition, over a new run directory.

        Tune's trials are the batches of packed studies and the trials of spread studies. The Tuner's `fit()` records
        everything in the run directory, and `RunResult(run_dir)` reads it. `run()` also shows progress, logs to MLflow,
        and goes on after a crash of Tune.
        """
        owned = begin(self.definition, run_dir, self.timing, fixed=self.fixed)
        owned.lease.release()  # nobody here watches over what the caller does with it
        try:
            with held_messages():
                return RayHost(owned).tuner()
        except PlanError:
            abandon(owned.directory, owned.term)
            raise

    @overload
    def run(
        self,
        run_dir: str | Path | None = None,
        *,
        progress: bool | str = True,
        in_process: bool = False,
        resume: bool = False,
        background: Literal[False] = False,
    ) -> RunResult: ...

    @overload
    def run(
        self,
        run_dir: str | Path | None = None,
        *,
        progress: bool | str = True,
        in_process: bool = False,
        resume: bool = False,
        background: Literal[True],
    ) -> RunHandle: ...

    def run(
        self,
        run_dir: str | Path | None = None,
        *,
        progress: bool | str = True,
        in_process: bool = False,
        resume: bool = False,
        background: bool = False,
    ) -> RunResult | RunHandle:
        """Run until every study has ended.

        Ctrl-C raises `RunInterrupted`; its `result` holds what is recorded. In a notebook Ctrl-C prints how to
        resume, and the unfinished result is returned.

        Args:
            run_dir: the run's folder; default `<storage>/<name>-<time>`.
            progress: "line" (True); "jsonl", one object per second for programs; or "none" (False).
            in_process: work without Ray, one study after the other in this process. A debugger stops in your own code
                then.
            resume: go on with the run in `run_dir` when there is one. This definition may add trials or customers.
            background: return a handle at once, with `leaderboard()`, `progress`, `cancel()` and `wait()`. A notebook
                shows no line of progress then.
        """
        if resume and run_dir is None:
            raise RunError("resume needs run_dir, the folder of the run to resume.")

        def start() -> OwnedRun:
            if resume and run_dir is not None:
                return resume_run(
                    RunDirectory(run_dir, self.timing),
                    self.definition,
                    self.timing,
                    in_process=in_process,
                    fixed=self.fixed,
                )
            return begin(self.definition, run_dir, self.timing, in_process=in_process, fixed=self.fixed)

        style = style_of(progress)
        return (_run_in_background if background else _run)(start, run_dir, style, in_process)

    @overload
    @staticmethod
    def resume(
        run_dir: str | Path,
        *,
        progress: bool | str = True,
        in_process: bool = False,
        background: Literal[False] = False,
        **changes: Unpack[DefinitionKeys],
    ) -> RunResult: ...

    @overload
    @staticmethod
    def resume(
        run_dir: str | Path,
        *,
        progress: bool | str = True,
        in_process: bool = False,
        background: Literal[True],
        **changes: Unpack[DefinitionKeys],
    ) -> RunHandle: ...

    @staticmethod
    def resume(
        run_dir: str | Path,
        *,
        progress: bool | str = True,
        in_process: bool = False,
        background: bool = False,
        **changes: Unpack[DefinitionKeys],
    ) -> RunResult | RunHandle:
        """Go on with a run from its records: finished studies are skipped, unfinished ones replayed.

        in_process, background: as in `run`. changes: fields of the definition that a resume may change, such as
        `trials=80`.
        """
        directory = RunDirectory(run_dir)
        definition = changed(frozen_definition(directory), changes) if changes else None
        style = style_of(progress)

        def start() -> OwnedRun:
            return resume_run(directory, definition, in_process=in_process)

        return (_run_in_background if background else _run)(start, run_dir, style, in_process)


def tune(
    X: FrameLike,
    y: ColumnLike,
    *,
    run_dir: str | Path | None = None,
    progress: bool | str = True,
    in_process: bool = False,
    **fields: Unpack[DefinitionKeys],
) -> RunResult:
    """Train the best model for one data set; `tune(X, y).model()` predicts.

    X: (n, columns) in any shape that scikit-learn takes, as new rows for the model then are. Columns of an array are
    called x0, x1, …, those of levels "a, x", those of one name "a_1", "a_2". y: (n,) or (n, 1) what is to be predicted;
    a Series and a DataFrame X are paired by the labels of their rows, all else by position.
    run_dir, progress, in_process: see `TuneRunner.run`. fields: keys of the definition, such as `trials=40`;
    `TuneRunner?` says what each means. `DataError` where X and y do not go together, `DefinitionError` where a key says
    what X and y do.

    >>> from tuning import tune                                       # doctest: +SKIP
    >>> model = tune(X, y, metric="roc_auc", trials=40).model()
    >>> model.predict(new_rows)
    """
    for key in sorted({"data", "target", "manifest"} & fields.keys()):
        raise DefinitionError(f"{key}: X and y say what to learn from; for a table with a target, {IN_A_TABLE}.")
    if isinstance(y, str):
        raise DataError(f"y: {y!r} is one text, and y is one value per row of X; for a column of X, {IN_A_TABLE}.")
    rows, values = paired(X, y)
    called = fields.get("name", "tune")
    data = {called: pd.concat([rows, values], axis=1)}
    runner = TuneRunner({"name": called, **fields, "data": data, "target": values.name})
    return runner.run(run_dir, progress=progress, in_process=in_process)


tune.__signature__ = signature(tune)  # type: ignore[attr-defined]  # by which Tab knows the keys

TuneRunner.__doc__ = f"{TuneRunner.__doc__}\n    The keys:\n\n{keys_help()}\n"


def _run(start: Callable[[], OwnedRun], run_dir: str | Path | None, style: str, in_process: bool) -> RunResult:
    """Begin a run and finish it. Signals are handled from the first moment to the last."""
    with Signals(at_once=True) as signals:
        session = RunSession(_owned_run(start, signals, run_dir), signals)
        signals.at_once = False
        try:
            return session.work(style, in_process)
        except RunInterrupted as stop:
            if not is_interactive():
                raise
            print(stop, file=sys.stderr)  # noqa: T201  # nobody else would say so in a notebook
            return session.result


def _run_in_background(
    start: Callable[[], OwnedRun], run_dir: str | Path | None, style: str, in_process: bool
) -> RunHandle:
    """Begin a run, and finish it in a thread of its own. Signals are handled until that thread starts.

    A notebook is shown nothing: it would stand in whatever cell runs meanwhile, and the handle says how far the run is.
    """
    style = "none" if style == "line" and in_notebook() else style
    with Signals(at_once=True) as signals:
        owned = _owned_run(start, signals, run_dir)
    session = RunSession(owned, asked := Signals())
    return RunHandle(owned.directory, session.counter, asked, lambda: session.work(style, in_process)).start()


def _owned_run(start: Callable[[], OwnedRun], signals: Signals, run_dir: str | Path | None) -> OwnedRun:
    check_free()
    try:
        with held_messages() as held:
            owned = start()
        write_held(held, owned.directory)
        return owned
    except BaseException:
        if not signals.received:
            raise
        # A C module that was just being loaded turns the interruption into an ImportError.
        raise RunInterrupted(signals.last, _too_early(signals.last, run_dir)) from None


def _too_early(number: int, run_dir: str | Path | None) -> str:
    """Return the message of a run that a signal stopped before its first trial."""
    text = f"stopped by {signal_name(number)} before the first trial"
    with contextlib.suppress(Exception):
        if run_dir is not None and newest_term(directory := RunDirectory(run_dir)) is not None:
            return f"{text}. Resume with: {resume_advice(directory.shown)}"
    return f"{text}. Nothing was recorded; start the run again."
