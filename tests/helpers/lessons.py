"""The lessons, `examples/*.ipynb`: a real kernel runs them, and what it shows is stored in them.

    python tests/helpers/lessons.py [LESSON …]

runs all of them, or those whose files are named, each in a temporary folder, and stores what they show: `make lessons`.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
from chaos import environment
from nbclient import NotebookClient
from nbformat import NotebookNode
from paths import ROOT

LESSONS = sorted((ROOT / "examples").glob("*.ipynb"))
MOST_SECONDS = 200  # of a cell
# All that a reader's Jupyter needs: the rest says which machine has run them.
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def read(lesson: Path) -> NotebookNode:
    return nbformat.read(lesson, as_version=4)


def executed(lesson: Path, folder: Path, **variables: str) -> NotebookNode:
    """The lesson after a kernel has run it in a folder, with outputs that name neither the folder nor the machine.

    A cell that raises is an error. variables: of the kernel's environment, beside this process's.
    """
    notebook = read(lesson)
    began_in = environment()
    beside = {"PYTHONPATH": os.pathsep.join([began_in["PYTHONPATH"], str(lesson.parent)])}  # where Jupyter would run it
    settings = {"timeout": MOST_SECONDS, "record_timing": False, "resources": {"metadata": {"path": str(folder)}}}
    client = NotebookClient(notebook, kernel_name="python3", coalesce_streams=True, **settings)
    client.execute(env={**began_in, **beside, **variables})
    notebook.metadata = METADATA
    temporary = re.escape(tempfile.gettempdir())  # where a lesson may make a folder of its own
    paths = re.compile(rf"{re.escape(str(folder))}|{temporary}/[\w.-]+")
    for cell in notebook.cells:
        cell.metadata = {"tags": cell.metadata.tags} if cell.metadata.get("tags") else {}
        if cell.cell_type == "code":  # Tune shows an empty text, and only where a run is long enough for Ray
            cell.outputs = [each for each in cell.outputs if each.get("data", {}).get("text/html") != ""]
        for texts, key in texts_of(cell):
            texts[key] = paths.sub("…", texts[key])
    return notebook


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts_of(cell: NotebookNode) -> Iterator[tuple[NotebookNode, str]]:
    """What a cell shows as text: each piece as a mapping and the key that it has there."""
    for output in cell.get("outputs", ()):
        if output.output_type == "stream":
            yield output, "text"
        for kind in output.get("data", ()):
            if kind.startswith("text/"):
                yield output.data, kind


def main(names: list[str]) -> None:
    for lesson in [Path(name).resolve() for name in names] or LESSONS:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(executed(lesson, Path(folder)), lesson)
        print(f"{time.monotonic() - began:5.1f} s  {lesson.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
