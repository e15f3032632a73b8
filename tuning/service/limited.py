"""A program that limits itself, and becomes another: python -I -S limited.py SECONDS BYTES COMMAND…

It ends with the thread that has started it (Linux), so that nothing is left when the server is killed. SECONDS are of
the processor and BYTES of memory, each for every process of the command; 0 for no limit. Only the standard library.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def main() -> None:
    seconds, size = int(sys.argv[1]), int(sys.argv[2])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    for kind, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_DATA, size)):
        if most:
            resource.setrlimit(kind, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.execv(sys.argv[3], sys.argv[3:])  # noqa: S606  # the command that the server gives


if __name__ == "__main__":
    main()
