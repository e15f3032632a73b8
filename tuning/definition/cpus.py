"""The CPUs that a run has by default: those of this machine, or of the cluster that RAY_ADDRESS names."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache

from tuning.errors import RayUnavailableError

ANSWERS_S = 2.0  # a head that has not answered then is not waited for here
ASKED_EVERY_S = 10.0  # a cluster grows


def usable_cpus() -> int:
    """Return the CPUs of this machine that this process may use."""
    return len(os.sched_getaffinity(0))


def default_slots() -> int:
    """Return the default number of trials at once; `RayUnavailableError` where a cluster refuses the token."""
    address = os.environ.get("RAY_ADDRESS", "")
    return int(sum(node.get("CPU", 0) for node in cluster_nodes(address))) or usable_cpus()


def cluster_nodes(address: str) -> Sequence[dict[str, float]]:
    """Return the resources of each node of the cluster at RAY_ADDRESS; none where none answers.

    Its head is asked without `ray.init`, which would wait for half a minute, and not say that a token is refused.
    """
    return _asked(address, int(time.monotonic() // ASKED_EVERY_S)) if address else ()


@lru_cache(maxsize=1)
def _asked(address: str, _period: int) -> Sequence[dict[str, float]]:
    if "://" in address or address in ("local", "auto") or not _answers(address):
        return ()
    from ray._raylet import GcsClient  # type: ignore[attr-defined]  # compiled, without types
    from ray.exceptions import AuthenticationError

    try:
        nodes = GcsClient(address=address).get_all_node_info(timeout=ANSWERS_S).values()
    except AuthenticationError as error:
        raise RayUnavailableError(
            f"Ray at RAY_ADDRESS ({address}) refuses the token of this process, or it has sent none. Set "
            "RAY_AUTH_MODE=token here and on every node, and give all of them the head's file ~/.ray/auth_token; or "
            "start every node with RAY_AUTH_MODE=disabled, and set it here."
        ) from error
    except Exception:  # whoever connects says why that fails
        return ()
    return [dict(node.resources_total) for node in nodes if node.state == 0]  # alive


def _answers(address: str) -> bool:
    """Return whether the address accepts a connection: Ray itself would wait for it."""
    with suppress(Exception):
        host, _, port = address.rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), ANSWERS_S).close()
        return True
    return False
