"""Names and addresses: file names for any id, URIs without their secrets."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import urlsplit, urlunsplit


def slug(name: str, *, cased: bool = False) -> str:
    """A file name for any customer id: readable when it can be, always unique, never a path.

    cased: capital letters stay without more, where names that differ by case alone meet nowhere. On some disks these
    are one file.

    >>> slug("acme")
    'acme'
    >>> slug("../etc/passwd").startswith("etc_passwd-")
    True
    """
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_-")[:40]
    if name and readable == name and (cased or name == name.lower()):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{readable}-{digest}" if readable else digest


def mask(uri: str) -> str:
    """The URI without passwords and secret query values, for logs, records and MLflow."""
    try:
        parts = urlsplit(uri)
    except ValueError:  # no address at all, such as one with half a bracket
        return f"{uri.partition('://')[0]}://…"
    host = parts.netloc
    if "@" in host:
        user, _, rest = host.rpartition("@")
        host = f"{user.split(':')[0]}:***@{rest}" if ":" in user else f"***@{rest}"
    query = re.sub(r"((?:secret|token|password|key|signature)[^=&]*)=[^&]*", r"\1=***", parts.query, flags=re.I)
    if (host, query) == (parts.netloc, parts.query):
        return uri  # taking apart and putting together loses slashes of sqlite:////file
    return urlunsplit((parts.scheme, host, parts.path, query, parts.fragment))


def mask_in(text: str) -> str:
    """A text with the secrets of all URIs in it masked."""
    return re.sub(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+", lambda found: mask(found.group()), text)


def is_uri(path: str) -> bool:
    """True for `scheme://…`; a plain local path is not one."""
    return "://" in path


def without_query(path: str) -> str:
    """A path without the options that a URI may end in (`?endpoint_override=…&scheme=http`)."""
    return re.sub(r"\?\w+=[^/]*(//[^/]*)?$", "", path) if is_uri(path) else path
