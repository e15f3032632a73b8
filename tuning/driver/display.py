"""How a run's progress is shown: a line that moves, a line now and then, JSON for programs, and a file in its folder.

A thread draws each of them, so that nobody who reports waits for a terminal or a storage.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from tuning.basics.public import is_interactive
from tuning.errors import DefinitionError, TuningError
from tuning.notes import Note
from tuning.records.ownership import check_there
from tuning.runs.begin import OwnedRun
from tuning.runs.progress import Counter, Progress, write_progress

if TYPE_CHECKING:
    from tqdm import tqdm

logger = logging.getLogger(__name__)

#: What `--progress` takes.
Style: TypeAlias = Literal["line", "jsonl", "none"]
STYLES: tuple[str, ...] = get_args(Style)

LOOK_S = 0.5  # between two looks at how far the run is
UNWATCHED_S, JSON_S = 30.0, 1.0  # between two lines
BAR = "{percentage:3.0f}%|{bar:10}| {elapsed} {desc}"
BAR_WIDTH = 26  # of a line before its figures
STEPS = 1000  # of the bar, whatever the run's work is counted in

_notes_shown = set[Note]()  # by runs of this process

_drawing = threading.Lock()
# No fork while a line is drawn: in the new process nobody would ever give back the locks that this takes.
os.register_at_fork(before=_drawing.acquire, after_in_parent=_drawing.release, after_in_child=_drawing.release)


def style_of(progress: bool | str) -> str:
    """The style that a caller wants: a name of `STYLES`, True for "line", False for "none"; else `DefinitionError`."""
    if isinstance(progress, bool):
        return "line" if progress else "none"
    if progress not in STYLES:
        raise DefinitionError(f"progress: {progress!r} is not one of {', '.join(STYLES)}; nor is it True or False.")
    return progress


def somebody_watches() -> bool:
    """Return whether a line that moves can be seen: in a notebook, or in a terminal that can go back in a line."""
    return (sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and _has_a_size()) or in_notebook()


def _has_a_size() -> bool:
    """Whether the terminal has room for a line; one made by a program may say 0 x 0, and tqdm then draws nothing."""
    try:
        return 0 not in os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        return True


def in_notebook() -> bool:
    """Return whether a kernel runs this process; that its library was imported says nothing."""
    ask = getattr(sys.modules.get("IPython"), "get_ipython", None)  # not there while another thread imports it
    return ask is not None and hasattr(ask(), "kernel")


#: Shows progress in one way, if it is time to. The second argument: whether the run's work has ended.
Draw: TypeAlias = Callable[[Progress, bool], None]


class Display:
    """A context manager: while it is open, progress is shown on stderr in a style of `STYLES`, and in the run's folder.

    owned: the run with that folder; without one no file is written.
    """

    def __init__(self, counter: Counter, style: str = "line", owned: OwnedRun | None = None) -> None:
        self._counter, self._style, self._owned = counter, style, owned
        self._over = threading.Event()
        self._stack = contextlib.ExitStack()

    def tell(self, what: str, notes: Iterable[Note]) -> None:
        """Show what runs, where, and the first of the notes.

        In a prompt or a notebook, notes that an earlier run of this process has shown are left out.
        """
        if self._style == "jsonl":
            for note in notes:
                _write(json.dumps({"note": str(note), **note.to_dict()}, ensure_ascii=False))
        if self._style != "line":
            return
        _write(what if self._owned is None else f"{what}\nin {self._owned.directory.shown}")
        new = [note for note in notes if not (is_interactive() and note in _notes_shown)]
        if new:
            plan = "runner.plan()" if is_interactive() else "tuning plan"
            more = f" ({len(new) - 1} more: `{plan}`)" if len(new) > 1 else ""
            _write(f"note: {new[0]}{more}")
        _notes_shown.update(new)

    def __enter__(self) -> Display:
        if self._owned is not None:
            timing = self._owned.timing
            look_s = timing.progress_s if self._owned.directory.local else timing.remote_progress_s
            self._start(_File(self._owned), look_s)
        if self._style == "jsonl":
            self._start(_Lines(JSON_S, lambda progress: json.dumps(progress.to_dict(), ensure_ascii=False)))
        elif self._style == "line" and somebody_watches():
            from tqdm.contrib.logging import logging_redirect_tqdm

            self._stack.enter_context(logging_redirect_tqdm())  # a warning gets a line of its own, not the bar's
            self._stack.enter_context(contextlib.suppress(OSError, ValueError))  # of a terminal that is gone
            self._start(partial(_draw_bar, self._stack.enter_context(contextlib.closing(_bar()))))
        elif self._style == "line":
            self._start(_Lines(UNWATCHED_S, lambda progress: f"{_clock(progress.seconds)} {progress}"))
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._stack.close()

    def _start(self, draw: Draw, look_s: float = LOOK_S) -> None:
        """Draw in a thread until the run is over. look_s: between two looks at how far the run is."""

        def look() -> None:
            over = False
            while not over:
                over = self._over.is_set()
                # A terminal or a pipe that is gone ends the line, not the run.
                with contextlib.suppress(OSError, ValueError):
                    draw(self._counter.now, over)
                self._over.wait(look_s)

        thread = threading.Thread(target=look, name="progress", daemon=True)
        self._stack.callback(thread.join)
        thread.start()


class _File:
    """The progress in the run's own folder, for whoever comes later or from elsewhere."""

    def __init__(self, owned: OwnedRun) -> None:
        self._owned, self._refused = owned, False

    def __call__(self, progress: Progress, last: bool) -> None:
        lease, directory = self._owned.lease, self._owned.directory
        if lease.taken_by or lease.gone:  # another owner writes its own
            return
        try:
            check_there(directory, self._owned.term)
            write_progress(directory, replace(progress, doing="") if last else progress)
            self._refused = False
        except TuningError as error:
            if not self._refused:
                logger.warning("the progress could not be written: %s", error)
            self._refused = True


class _Lines:
    """A line of text every so many seconds, and when something else takes its time."""

    def __init__(self, pause: float, text: Callable[[Progress], str]) -> None:
        self._pause, self._text = pause, text
        self._at, self._doing = 0.0, ""

    def __call__(self, progress: Progress, last: bool) -> None:
        if last or progress.seconds - self._at >= self._pause or progress.doing not in ("", self._doing):
            self._at, self._doing = progress.seconds, progress.doing
            _write(self._text(progress))


def _bar() -> tqdm:
    """Return a line that moves, in a terminal or a notebook."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without ipywidgets a notebook has the line in text
        from tqdm.auto import tqdm

    class Bar(tqdm):
        monitor_interval = 0  # a further thread, which would draw what this one does

    return Bar(total=STEPS, bar_format=BAR, dynamic_ncols=True, mininterval=0)


def _draw_bar(bar: tqdm, progress: Progress, last: bool) -> None:
    bar.n = STEPS if last and progress.done_studies >= progress.studies else int(STEPS * progress.share)
    columns = 0 if in_notebook() else shutil.get_terminal_size((0, 0)).columns
    with _drawing:  # which the description does
        bar.set_description_str(progress.line(columns - BAR_WIDTH) if columns else str(progress))


def _write(line: str) -> None:
    with _drawing:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds)))
