"""S3 beyond pyarrow: a put that succeeds only where nothing is yet, and single-request puts of small files."""

from __future__ import annotations

import errno
import os
from functools import lru_cache
from importlib.util import find_spec
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

S3 = "s3://"
#: What Arrow says of the errors that have these codes: it has one class for all of S3's errors, and gives no code.
ARROW_WORDS = {
    "NO_SUCH_BUCKET": "NoSuchBucket",
    "ACCESS_DENIED": "AccessDenied",
    "INVALID_ACCESS_KEY_ID": "InvalidAccessKeyId",
    "SIGNATURE_DOES_NOT_MATCH": "SignatureDoesNotMatch",
    "NETWORK_CONNECTION": "EndpointConnectionError",
    "SLOW_DOWN": "SlowDown",
    "HTTP status 503": "SlowDown",  # of a HEAD request, which has no other words
}


class S3Error(OSError):
    """An error of boto3. code: S3's, or the name of botocore's class."""

    def __init__(self, code: str, error: Exception) -> None:
        super().__init__(f"{code}: {error}")
        self.code = code


def s3_code(error: OSError) -> str:
    """Return the code of an error of S3; nothing for another one."""
    if isinstance(error, S3Error):
        return error.code
    return next((code for words, code in ARROW_WORDS.items() if words in str(error)), "")


def quick_puts(uri: str) -> str:
    """The URI with pyarrow's option that small files are one put instead of three requests."""
    if not uri.startswith(S3) or "allow_delayed_open" in uri:
        return uri
    return f"{uri}{'&' if '?' in uri else '?'}allow_delayed_open=true"


def conditional(uri: str) -> bool:
    """True when `put_new` works for this storage: S3, and boto3 is installed."""
    return uri.startswith(S3) and find_spec("boto3") is not None


def put_new(uri: str, path: str, data: bytes) -> None:
    """Put an object that must not exist (`If-None-Match: *`); `FileExistsError` when it does.

    uri: of the run directory, for its credentials, region and endpoint. path: "bucket/key".
    """
    from botocore.exceptions import BotoCoreError, ClientError

    bucket, _, key = path.partition("/")
    try:
        client(uri).put_object(Bucket=bucket, Key=key, Body=data, IfNoneMatch="*")
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code in ("PreconditionFailed", "ConditionalRequestConflict"):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from error
        raise S3Error(code, error) from error
    except BotoCoreError as error:
        raise S3Error(type(error).__name__, error) from error


@lru_cache(maxsize=4)
def client(uri: str) -> Any:
    """A boto3 client for a URI as pyarrow takes it: its credentials, region and endpoint."""
    import boto3

    parts = urlsplit(uri)
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    endpoint = options.get("endpoint_override")
    if endpoint and "://" not in endpoint:
        endpoint = f"{options.get('scheme', 'https')}://{endpoint}"
    return boto3.client(
        "s3",
        endpoint_url=endpoint or None,
        region_name=options.get("region"),
        aws_access_key_id=unquote(parts.username) if parts.username else None,
        aws_secret_access_key=unquote(parts.password) if parts.password else None,
    )
