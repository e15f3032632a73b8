"""Reads what names mean, below `TUNING_DATA_ROOTS`, in a process of its own, and counts what is opened.

    python tests/helpers/reading_below_roots.py FOLDER HOW_MANY

FOLDER has a tree with links, pipes and devices; `root` in it is the root. It prints as JSON how many names were refused
and how many files were read, and the paths outside the root that Python or a C library has opened.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path

from tuning.data.file_access import file_digest, file_stamp, size_of
from tuning.data.files import find_files
from tuning.data.manifest import read_manifest
from tuning.data.registry import file_source
from tuning.definition.definition import define
from tuning.errors import TuningError
from tuning.planning.portfolios.sources import find_portfolio
from tuning.storage.data_roots import VARIABLE
from tuning.user_code import source_of

PARTS = (
    *("a.csv", "sub", "b.csv", "é.csv", "out.csv", "away", "inner.csv", "pipe.csv", "zero.csv", "gone.csv", "m.yaml"),
    *("secret.csv", "socket.csv", "..", ".", "", "~", "*", "**", "*.csv", "[ao]*.csv", "\n", "．．", "%2e%2e", "..\\"),
    *("root", "outside"),
)
BEGINNINGS = (
    *("{root}/", "{root}/", "{root}/", "{root}", "/", "", "{folder}/", "file://{root}/", "~/", "/proc/self/cwd/", "//"),
)


def main(folder: str, count: int) -> None:
    root, drawn = f"{folder}/root", random.Random(7)
    os.environ[VARIABLE] = root
    os.chdir(root)
    opened, refused, read = set[str](), 0, set[str]()

    def hear(event: str, given: tuple[object, ...]) -> None:
        if event not in ("open", "os.scandir", "os.listdir") or not isinstance(given[0], str):
            return
        if event == "open" and isinstance(given[2], int) and given[2] & os.O_PATH:
            return  # finds a file and does not open it
        place = os.path.realpath(given[0])
        if place.startswith((folder, "/dev/", "/etc/")) and not (place + "/").startswith(f"{root}/"):
            opened.add(place)

    _read(f"{root}/a.csv")  # whatever is imported for that
    sys.addaudithook(hear)
    for _ in range(count):
        beginning = drawn.choice(BEGINNINGS).format(root=root, folder=folder)
        name = beginning + "/".join(drawn.choices(PARTS, k=drawn.randint(1, 4)))
        size_of(name)
        try:
            found = [file.path for file in find_files([name])]
        except TuningError:
            refused += 1
            found = [name] if refused % 5 == 0 else []
        for path in {*found} - read:
            read.add(path)
            _read(path)
    print(json.dumps({"refused": refused, "read": len(read), "opened": sorted(opened)}))


def _read(path: str) -> None:
    """In all ways in which a definition's file is read."""
    file_stamp(path)
    file_digest(path)
    portfolio = define({"data": "x.csv", "target": "y", "portfolio": path if path.strip() else "none"})
    for attempt in (
        lambda: file_source(path, {}).read(),
        lambda: file_source(path, {}).columns(),
        lambda: read_manifest(path),
        lambda: find_portfolio(portfolio, None),
        lambda: source_of(f"{path}.py:function"),
    ):
        try:
            attempt()
            said = ""
        except TuningError as error:
            said = str(error)
        assert "outside" not in said or "outside" in path, said


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).resolve()), int(sys.argv[2]))
