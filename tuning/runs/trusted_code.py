"""Code that a run's folder brings: it runs where its user has run it before, or allows it.

A run's digests of its code tell damage, and not who wrote it: whoever makes a run makes these, too. So what a user has
run is listed outside of all runs, in the user's own config folder.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tuning.basics.user_folder import user_folder
from tuning.definition.definition import Definition
from tuning.errors import UntrustedCodeError
from tuning.models.entries import Stored
from tuning.models.preparation import Preparation
from tuning.storage.run_directory import RunDirectory
from tuning.user_code import source_of

FILE = "trusted-code.txt"


def trust(definition: Definition, directory: RunDirectory) -> None:
    """List the code of a run that its user starts or resumes, which is an order to run it.

    Where the list cannot be written, the user is asked another time.
    """
    path = _list()
    if path is None or not (new := sorted({*_code_of(definition, directory).values()} - _trusted())):
        return
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(path, "a", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write("".join(f"{digest}\n" for digest in new))


def check_definition(definition: Definition, directory: RunDirectory, allow_code: bool) -> None:
    """Raise `UntrustedCodeError` where a winner that is fitted again would run code of somebody else."""
    if not allow_code:
        _check(_code_of(definition, directory), directory)


def check_preparation(preparation: Preparation | None, directory: RunDirectory, allow_code: bool) -> None:
    """Raise `UntrustedCodeError` where a saved model holds a `prepare` of somebody else."""
    if preparation is not None and not allow_code:
        _check({f"prepare ({preparation.name})": _digest(preparation.name, preparation.source)}, directory)


def _check(code: Mapping[str, str], directory: RunDirectory) -> None:
    trusted = _trusted()
    if unknown := [what for what, digest in code.items() if digest not in trusted]:
        raise UntrustedCodeError(
            f"{directory.shown} brings code that no run of yours has run here: {', '.join(unknown)}. Whoever made the "
            "run wrote it. If you trust them, allow it: --allow-code, in Python allow_code=True."
        )


def _code_of(definition: Definition, directory: RunDirectory) -> dict[str, str]:
    """Return the digests of all code of the user's that a definition names, by key and name."""
    code = {(key, name): source_of(name, directory) for key, name in definition.own_functions.items()}
    for entry in definition.models:
        estimator = entry.estimator
        if isinstance(estimator, Stored):
            code["models", estimator.file] = estimator.sha256
        elif isinstance(estimator, str) and not entry.built_in:
            code["models", estimator] = source_of(estimator, directory)
    return {f"{key} ({name})": _digest(name, content) for (key, name), content in code.items()}


def _digest(name: str, content: str | None) -> str:
    """Return the digest of a piece of code. content: of the file, or its digest; None for a module's function."""
    return hashlib.sha256(json.dumps([name, content]).encode()).hexdigest()


def _list() -> Path | None:
    """Return the file with a digest per line; None for a user without a home."""
    folder = user_folder()
    return None if folder is None else folder / FILE


def _trusted() -> frozenset[str]:
    path = _list()
    try:
        return frozenset() if path is None else frozenset(path.read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError):
        return frozenset()
