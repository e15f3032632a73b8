"""Where a user's token for a server is: in the environment, in a file that it names, or in the user's own folder."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tuning.basics.user_folder import user_folder
from tuning.errors import DefinitionError


def kept_file(server: str) -> Path | None:
    """The file in the user's own folder with the token for a server; None for a user without a home.

    server: its address.
    """
    folder = user_folder()
    name = re.sub(r"[^a-z0-9.-]+", "_", server.rstrip("/").lower())
    return None if folder is None else folder / "tokens" / name


def keep(server: str, token: str) -> Path | None:
    """Write a token so that only this user can read it; the file, None for a user without a home."""
    file = kept_file(server)
    if file is None:
        return None
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.unlink(missing_ok=True)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as opened:
        opened.write(token)
    return file


def token_for(server: str) -> str | None:
    """`TUNING_TOKEN`, else what the file says that `TUNING_TOKEN_FILE` names, else the kept one; None without any."""
    if token := os.environ.get("TUNING_TOKEN"):
        return token
    named = os.environ.get("TUNING_TOKEN_FILE")
    file = Path(named) if named else kept_file(server)
    try:
        return None if file is None else file.read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError) as error:
        if named:
            raise DefinitionError(
                f"TUNING_TOKEN_FILE: {named!r} cannot be read: {error}. Name a file that holds a token."
            ) from error
        return None
