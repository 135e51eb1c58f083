"""What a store said, in words of our own: its code if that is on a closed list, and what to do about it.

A store answers a refused request with a page of XML that names the access key, the string that was signed, and the
request; clients put that into their errors, with the address that was asked. None of it may reach a log or a person.
So nothing of such a text is passed on but a word that stands here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_CODES = {
    "AccessDenied": "the credentials in use may not do this; give them the right to list, read, write and delete there",
    "AllAccessDisabled": "the account has been closed; ask its owner",
    "ExpiredToken": "the credentials have expired; renew them",
    "InvalidAccessKeyId": "the store does not know this access key; check AWS_ACCESS_KEY_ID, AWS_PROFILE, the endpoint",
    "InvalidToken": "the store does not know this session token; renew the credentials, or unset AWS_SESSION_TOKEN",
    "NoSuchBucket": "create the bucket, or correct its name",
    "NotImplemented": "the store lacks something that Delta needs: conditional writes (If-None-Match)",
    "PermanentRedirect": "the bucket is in another region; set AWS_REGION",
    "AuthorizationHeaderMalformed": "the bucket is in another region; set AWS_REGION",
    "RequestTimeTooSkewed": "the clock of this machine is wrong; set it",
    "SignatureDoesNotMatch": "the secret key does not fit the access key; check the credentials",
    "SlowDown": "the store takes no more requests for now; try again",
    "ServiceUnavailable": "the store cannot answer for now; try again",
    "InternalError": "the store has failed; look into its log, try again",
}
"""Codes of Amazon's S3 API (Error responses, list of error codes)."""

_STATUS = {
    "401": "AccessDenied",
    "403": "AccessDenied",
    "501": "NotImplemented",
    "503": "ServiceUnavailable",
}

_CREDENTIALS = re.compile(r"credential|no providers in chain", re.IGNORECASE)
_UNREACHABLE = re.compile(
    "error sending request|Connection refused|dns error|UnknownHost|ConnectException|timed out|"
    "Unable to execute HTTP request"
)
_CERTIFICATE = re.compile(r"certificate|SSL", re.IGNORECASE)


class Said(NamedTuple):
    """What happened and what to do."""

    what: str
    next_step: str


def of(error: BaseException) -> Said:
    """The sentence for an error of delta-rs, or of Hadoop in Spark's text. Reads that text, gives none of it."""
    text = str(error)
    code = _code(text)
    if code is not None:
        return Said(f"the store answered {code}", _CODES[code])
    if _UNREACHABLE.search(text):
        kind = "certificate is not trusted" if _CERTIFICATE.search(text) else "store cannot be reached"
        return Said(f"the {kind}", "check the network, AWS_ENDPOINT_URL and AWS_REGION")
    if _CREDENTIALS.search(text):
        return Said(
            "no credentials for the store were found",
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give this machine a role",
        )
    return Said(f"the store failed with {type(error).__name__}", "check that the bucket is there and can be read")


def _code(text: str) -> str | None:
    found = re.search(r"<Code>([A-Za-z]{3,60})</Code>", text) or re.search(
        r"unhandled error \(([A-Za-z]{3,60})\)", text
    )
    if found and found[1] in _CODES:
        return found[1]
    found = re.search(r"(?:status code:? |status: |HTTP status )(\d{3})\b", text)
    return _STATUS.get(found[1]) if found else None
