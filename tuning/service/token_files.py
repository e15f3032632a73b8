"""Where people keep the tokens of the servers that they use: a file of their own, by the server's URL."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from tuning.basics.documents import Json
from tuning.basics.user_folder import VARIABLE, user_folder
from tuning.errors import DefinitionError

FILE = "service-tokens.json"


def token_file() -> Path:
    """The file of this user, which only they can read; `DefinitionError` for a user without a home."""
    folder = user_folder()
    if folder is None:
        raise DefinitionError(f"there is no folder for the token's file: set {VARIABLE} to one.")
    return folder / FILE


def kept_token(url: str) -> str | None:
    """The token for a server; None where the file has none."""
    found = _read(token_file()).get(_name(url))
    return found if isinstance(found, str) else None


def token_for(url: str) -> str | None:
    """`TUNING_TOKEN`, else what the file says that `TUNING_TOKEN_FILE` names, else the kept one; None without any."""
    if token := os.environ.get("TUNING_TOKEN"):
        return token
    named = os.environ.get("TUNING_TOKEN_FILE")
    if not named:
        return kept_token(url)
    try:
        return Path(named).read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(f"TUNING_TOKEN_FILE: {named!r} cannot be read: {error}. Name a token's file.") from error


def keep_token(url: str, token: str) -> Path:
    """Write a server's token into the file, and say where that is; `OSError` where that cannot be."""
    file = token_file()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    number, name = tempfile.mkstemp(dir=file.parent)  # for its owner only
    with os.fdopen(number, "w", encoding="utf-8") as stream:
        json.dump({**_read(file), _name(url): token}, stream, indent=1)
    Path(name).replace(file)
    return file


def _name(url: str) -> str:
    return url.rstrip("/").lower()


def _read(file: Path) -> Json:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
