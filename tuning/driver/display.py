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
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, get_args

from tuning.basics.public import is_interactive
from tuning.driver.progress import Counter
from tuning.errors import DefinitionError, TuningError
from tuning.notes import Note
from tuning.records.ownership import check_there
from tuning.runs.begin import OwnedRun
from tuning.runs.progress import Progress, write_progress

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


class _Presenter(Protocol):
    """Shows progress in one way. look_s: between two looks at how far the run is."""

    look_s: float

    def draw(self, progress: Progress, last: bool) -> None:
        """Show the progress if it is time to. last: the run's work has ended."""

    def close(self) -> None:
        """End what is shown: nothing more will come."""


class Display:
    """A context manager: while it is open, progress is shown on stderr in a style of `STYLES`, and in the run's folder.

    owned: the run with that folder; without one no file is written.
    """

    def __init__(self, counter: Counter, style: str = "line", owned: OwnedRun | None = None) -> None:
        self._counter, self._style, self._owned = counter, style, owned
        self._over = threading.Event()
        self._stack = contextlib.ExitStack()

    def tell(self, notes: Iterable[Note]) -> None:
        """Show what should be read before the first result, a line each.

        In a prompt or a notebook, a note that an earlier run of this process has shown is left out.
        """
        for note in notes:
            if self._style == "jsonl":
                _write(json.dumps({"note": str(note), **note.to_dict()}, ensure_ascii=False))
            elif self._style == "line" and not (is_interactive() and note in _notes_shown):
                _write(f"note: {note}")
                _notes_shown.add(note)

    def __enter__(self) -> Display:
        if self._owned is not None:
            self._start(_File(self._owned))
        if self._style == "jsonl":
            self._start(_WrittenLines(JSON_S, lambda progress: json.dumps(progress.to_dict(), ensure_ascii=False)))
        elif self._style == "line" and somebody_watches():
            from tqdm.contrib.logging import logging_redirect_tqdm

            self._stack.enter_context(logging_redirect_tqdm())  # a warning gets a line of its own, not the bar's
            self._start(_MovingLine())
        elif self._style == "line":
            self._start(_WrittenLines(UNWATCHED_S, lambda progress: f"{_clock(progress.seconds)} {progress}"))
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._stack.close()

    def _start(self, presenter: _Presenter) -> None:
        thread = threading.Thread(target=self._draw_on, args=(presenter,), name="progress", daemon=True)
        self._stack.callback(self._finish, presenter, thread)
        thread.start()

    def _draw_on(self, presenter: _Presenter) -> None:
        while True:
            # A terminal or a pipe that is gone ends the line, not the run.
            with contextlib.suppress(OSError, ValueError):
                presenter.draw(self._counter.now, last=False)
            if self._over.wait(presenter.look_s):
                return

    def _finish(self, presenter: _Presenter, thread: threading.Thread) -> None:
        thread.join()
        with contextlib.suppress(OSError, ValueError):
            presenter.draw(self._counter.now, last=True)
            presenter.close()


class _File:
    """The progress in the run's own folder, for whoever comes later or from elsewhere."""

    def __init__(self, owned: OwnedRun) -> None:
        self._owned = owned
        self.look_s = owned.timing.progress_s if owned.directory.local else owned.timing.remote_progress_s
        self._refused = False

    def draw(self, progress: Progress, last: bool) -> None:
        lease, directory = self._owned.lease, self._owned.directory
        if lease.taken_by or lease.gone:  # another owner writes its own
            return
        try:
            check_there(directory, self._owned.term)
            write_progress(directory, replace(progress, doing="") if last else progress)
        except TuningError as error:
            if not self._refused:
                logger.warning("the progress could not be written: %s", error)
            self._refused = True
        else:
            self._refused = False

    def close(self) -> None:
        pass


class _MovingLine:
    """A line that moves, in a terminal or a notebook."""

    look_s = LOOK_S

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # without ipywidgets a notebook has the line in text
            from tqdm.auto import tqdm

        class Bar(tqdm):
            monitor_interval = 0  # a further thread, which would draw what this one does

        self._bar: tqdm = Bar(total=STEPS, bar_format=BAR, dynamic_ncols=True, mininterval=0)

    def draw(self, progress: Progress, last: bool) -> None:
        self._bar.n = STEPS if last and progress.done_studies >= progress.studies else int(STEPS * progress.share)
        columns = 0 if in_notebook() else shutil.get_terminal_size((0, 0)).columns
        with _drawing:
            self._bar.set_description_str(
                progress.line(columns - BAR_WIDTH) if columns else str(progress)
            )  # which draws

    def close(self) -> None:
        self._bar.close()


class _WrittenLines:
    """A line of text every so many seconds, and when something else takes its time."""

    look_s = LOOK_S

    def __init__(self, pause: float, text: Callable[[Progress], str]) -> None:
        self._pause, self._text = pause, text
        self._at, self._doing = 0.0, ""

    def draw(self, progress: Progress, last: bool) -> None:
        if last or progress.seconds - self._at >= self._pause or progress.doing not in ("", self._doing):
            self._at, self._doing = progress.seconds, progress.doing
            _write(self._text(progress))

    def close(self) -> None:
        pass


def _write(line: str) -> None:
    with _drawing:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
