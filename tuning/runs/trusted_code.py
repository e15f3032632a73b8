"""Code that a run's folder brings: it runs where its user has run it before, or allows it.

A run's digests of its code tell damage, and not who wrote it: whoever makes a run makes these, too. So what a user has
run is listed outside of all runs, in the user's own config folder.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tuning.basics.user_folder import user_folder
from tuning.definition.definition import Definition
from tuning.errors import UntrustedCodeError
from tuning.models.entries import Stored
from tuning.models.preparation import Preparation
from tuning.storage.run_directory import RunDirectory
from tuning.user_code import source_of

FILE = "trusted-code.txt"


class _CodePiece(NamedTuple):
    """A function, a class or a pickled estimator that is named in a run.

    key: of the definition that it is the value of. name: as it stands in the run. content: of its file, or the digest
    of that; None for a function of a module.
    """

    key: str
    name: str
    content: str | None

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps([self.name, self.content]).encode()).hexdigest()


def trust(definition: Definition, directory: RunDirectory) -> None:
    """List the code of a run that its user starts or resumes, which is an order to run it.

    Where the list cannot be written, the user is asked another time.
    """
    wanted = {piece.digest for piece in _pieces(definition, directory)}
    path = _list()
    if path is None or not (new := sorted(wanted - _trusted())):
        return
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(path, "a", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write("".join(f"{digest}\n" for digest in new))


def check_definition(definition: Definition, directory: RunDirectory, allow_code: bool) -> None:
    """`UntrustedCodeError` where a winner that is fitted again would run code of somebody else."""
    if not allow_code:
        _check(_pieces(definition, directory), directory)


def check_preparation(preparation: Preparation | None, directory: RunDirectory, allow_code: bool) -> None:
    """`UntrustedCodeError` where a saved model holds a `prepare` of somebody else."""
    if preparation is not None and not allow_code:
        _check([_CodePiece("prepare", preparation.name, preparation.source)], directory)


def _check(pieces: Iterable[_CodePiece], directory: RunDirectory) -> None:
    trusted = _trusted()
    unknown = [f"{piece.key} ({piece.name})" for piece in pieces if piece.digest not in trusted]
    if unknown:
        raise UntrustedCodeError(
            f"{directory.shown} brings code that no run of yours has run here: {', '.join(unknown)}. Whoever made the "
            "run wrote it. If you trust them, allow it: --allow-code, in Python allow_code=True."
        )


def _pieces(definition: Definition, directory: RunDirectory) -> Iterator[_CodePiece]:
    """All code of the user's that a definition names."""
    for key, name in definition.own_functions.items():
        yield _CodePiece(key, name, source_of(name, directory))
    for entry in definition.models:
        estimator = entry.estimator
        if isinstance(estimator, Stored):
            yield _CodePiece("models", estimator.file, estimator.sha256)
        elif isinstance(estimator, str) and not entry.built_in:
            yield _CodePiece("models", estimator, source_of(estimator, directory))


def _list() -> Path | None:
    """The file with a digest per line; None for a user without a home."""
    folder = user_folder()
    return None if folder is None else folder / FILE


def _trusted() -> frozenset[str]:
    path = _list()
    try:
        return frozenset() if path is None else frozenset(path.read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError):
        return frozenset()
