"""Storage errors: which to retry, and how to explain the rest."""

from __future__ import annotations

import errno
import random
import time
from collections.abc import Callable
from typing import TypeVar

from tuning.basics.wording import lines_of
from tuning.storage.s3 import s3_code

T = TypeVar("T")

ATTEMPTS = 4
# Another attempt would find the same: the user has to do something first.
PERMANENT = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "access is denied",
    errno.EPERM: "access is denied",
    errno.ENOENT: "it is not there",
    errno.EEXIST: "it is there already",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.EISDIR: "it is a folder",
    errno.ENAMETOOLONG: "the path is too long",
    errno.EFBIG: "the file is larger than this storage or process may write",
}
PERMANENT_CODES = {
    "NoSuchBucket": "the bucket does not exist (any more)",
    "AccessDenied": "access is denied: check the credentials and the bucket's policy",
    "InvalidAccessKeyId": "the access key is not known",
    "SignatureDoesNotMatch": "the secret key is wrong",
}
TRANSIENT_CODES = {
    "EndpointConnectionError": "the object storage cannot be reached",
    "SlowDown": "the object storage is overloaded",
}


def with_retries(action: Callable[[], T], pause: float) -> T:
    """What `action` returns; an `OSError` that may pass is answered with up to `ATTEMPTS` attempts.

    pause: seconds before the second attempt. The pauses grow fourfold, so from a tenth of a second on it is over after
    about two seconds (plus what the filesystem's own client waits).
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return action()
        except OSError as error:
            if is_permanent(error):
                raise
        time.sleep(pause * random.uniform(0.75, 1.25))
        pause *= 4
    return action()


def is_permanent(error: OSError) -> bool:
    """True when another attempt would find the same."""
    return error.errno in PERMANENT or s3_code(error) in PERMANENT_CODES


def described(error: OSError) -> str:
    """The failure in words that a user can act upon, the storage's own in brackets."""
    own = " ".join(lines_of(error)).rstrip(".")  # what follows is the rest of a sentence
    if meaning := {**PERMANENT_CODES, **TRANSIENT_CODES}.get(s3_code(error)):
        return f"{meaning} ({own})"
    meaning = PERMANENT.get(error.errno or 0)
    return f"{meaning} ({own})" if meaning and error.strerror != meaning else own
