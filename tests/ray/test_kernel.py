"""A real kernel: what its cells show, what they leave behind, and what an interruption costs."""

from __future__ import annotations

import re

import nbformat
import pytest
from builders import write_customers
from chaos import environment
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

FRAME = """
import pandas as pd; from tuning import TuneRunner
frame = pd.concat(pd.read_csv(f"data/c000{n}.csv").assign(shop=n) for n in range(3))
result = TuneRunner(data=frame, by="shop", target="y", search_space="ridge", trials=3, **ON_RAY).run("frame")
result
"""
OBJECTIVE = """
from tuning import TuneRunner
from optuna.distributions import FloatDistribution
def loss(config):
    return (config["x"] - 3) ** 2
space = {"x": FloatDistribution(-10, 10)}
found = TuneRunner(objective=loss, search_space=space, mode="min", trials=6, **ON_RAY).run()
found.best_config()
"""
LEFT = """
import gc, os, threading, time, ray
from ray._private.state import actors
def left():
    gc.collect()
    alive = sum(each["State"] != "DEAD" for each in actors().values())
    return (alive, sorted(each.name for each in threading.enumerate() if each.name in OURS), len(ray.nodes()))
OURS = ("progress", "tuning-run", "mlflow-copy", "tuning-lease", "end-ray", "load-tune")
node = ray.nodes()[0]["NodeID"]
def same():  # what has been told to end takes a moment
    until = time.monotonic() + 20
    while left() != before and time.monotonic() < until:
        time.sleep(0.1)
    return left() == before or (left(), before)
before = left()
before
"""
INTERRUPTED = """
import glob, signal
def slow(config):
    time.sleep(0.2)
    return config["x"] ** 2
def interrupt():  # as a notebook's button does it
    while not glob.glob("slow/records/*/trials-*"):
        time.sleep(0.05)
    os.killpg(os.getpgid(0), signal.SIGINT)
threading.Thread(target=interrupt).start()
search = TuneRunner(objective=slow, search_space=space, mode="min", trials=100, **ON_RAY)
stopped = search.run("slow")
stopped
"""
RESUMED = """
assert stopped.unfinished == 1
assert same() is True, same()
recorded = len(stopped.trial_records)
assert 0 < recorded < 100
"""
BESIDE = """
handle = search.run("slow", resume=True, background=True)
print("beside", handle.leaderboard()["trials"][0] >= recorded)
while handle.progress.done_trials <= recorded:
    time.sleep(0.5)
handle.cancel()
ended = handle.wait()
assert len(ended.trial_records) > recorded
assert ray.nodes()[0]["NodeID"] == node
assert same() is True, same()
"""
HELP = """
from IPython.core.completer import provisionalcompleter
ip, typed = get_ipython(), "TuneRunner(tar"
with provisionalcompleter():
    print([each.text for each in ip.Completer.completions(typed, len(typed))])
print(ip.inspector.info(TuneRunner, oname="TuneRunner")["docstring"])
"""
# The frame comes last: the Ray of the first cell loads libraries of models into each worker where that one needs them.
CELLS = [OBJECTIVE, LEFT, INTERRUPTED, RESUMED, BESIDE, FRAME, HELP]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[list[nbformat.NotebookNode]]:
    """What each cell shows; a cell that raises fails."""
    folder = tmp_path_factory.mktemp("notebook")
    write_customers(folder / "data", 3)
    settings = 'ON_RAY = {"placement": "packed", "slots": 1, "mlflow": False}'
    notebook = new_notebook(cells=[new_code_cell(cell.strip()) for cell in (settings, *CELLS)])
    client = NotebookClient(notebook, resources={"metadata": {"path": str(folder)}})
    client.execute(env=environment())
    return [cell.outputs for cell in notebook.cells[1:]]


def shown(cell: list[nbformat.NotebookNode], stream: str) -> list[str]:
    """The lines of a stream as a notebook shows them: what follows a carriage return stands over what was there."""
    text = "".join(output.text for output in cell if output.output_type == "stream" and output.name == stream)
    return [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n") if line.strip()]


def value(cell: list[nbformat.NotebookNode]) -> nbformat.NotebookNode:
    (found,) = (output for output in cell if output.output_type == "execute_result")
    return found.data


def test_a_frame_and_a_target_are_four_lines_and_an_objective_eight() -> None:
    assert len(FRAME.strip().splitlines()) <= 4
    assert len(OBJECTIVE.strip().splitlines()) <= 8


def test_a_cell_shows_one_line_of_progress_the_outcome_and_a_table(outputs: list[list[nbformat.NotebookNode]]) -> None:
    (frame,) = (cell for cell, text in zip(outputs, CELLS, strict=True) if text is FRAME)
    assert {output.output_type for output in frame} == {"stream", "execute_result"}  # Tune's own would clear them
    what, folder, note, progress = shown(frame, "stderr")
    assert what.startswith("3 customers, 9 trials, ")
    assert (folder[:3], note[:6]) == ("in ", "note: ")
    assert re.search(r"100%\|.*3/3 customers, 9 trials", progress)
    undecided = "3 of 3 customers have a model: 3 undecided (3 with too few hold-out rows); 9 trials."
    assert shown(frame, "stdout")[0] == undecided
    html = value(frame)["text/html"]
    assert "<th>customer</th>" in html
    assert "<th>test_score</th>" in html
    assert "result.customer(" in html


def test_an_interrupted_cell_says_how_to_go_on(outputs: list[list[nbformat.NotebookNode]]) -> None:
    (interrupted,) = (cell for cell, text in zip(outputs, CELLS, strict=True) if text is INTERRUPTED)
    said = "\n".join(shown(interrupted, "stderr"))
    assert re.search(r"stopped by Ctrl-C with \d+ trials? .* Resume with: runner\.run\('.*slow', resume=True\)", said)
    assert "unfinished, 1 study left" in value(interrupted)["text/plain"]


def test_a_run_beside_the_notebook_is_looked_at_while_it_goes_on(outputs: list[list[nbformat.NotebookNode]]) -> None:
    (beside,) = (cell for cell, text in zip(outputs, CELLS, strict=True) if text is BESIDE)
    assert set(shown(beside, "stdout")) == {"beside True"}
    assert shown(beside, "stderr") == []  # a line that moves would be written into whatever cell runs meanwhile


def test_help_and_completion_know_the_keys(outputs: list[list[nbformat.NotebookNode]]) -> None:
    said = "\n".join(shown(outputs[-1], "stdout"))
    assert "['target=']" in said
    assert "target: Column to predict." in said
