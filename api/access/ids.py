r"""Ids of clusters, groups and members in URLs. They are text that strangers choose and may contain anything.

A path segment holds an id in one of three ways:

* as it is, where it consists of letters, digits, `_`, `.` and `-` and does not begin with `.` or `-`;
* `~` and the base64url of its UTF-8 without padding, for every other id. Slashes, `..`, NUL, line breaks and marks of
  direction survive every proxy this way, and no server has to agree with another about `%2F`;
* `~` alone, with the id in the query parameter of the same name: `/api/v1/clusters/demo/groups/~?group=a%2Fb`. This is
  for people with curl and for dashboards, which can percent-encode but not base64.

Answers give every object its own `href`, always in one of the first two ways: follow it, do not build it. Reading is
lenient (any segment without a leading `~` is taken as it stands), writing is canonical.
"""

from __future__ import annotations

import base64
import binascii
import re
from hashlib import blake2b

ID_BYTES_MAX = 32_767
"""Longest id in UTF-8 bytes: Kafka's own bound, the 16-bit length of a protocol string."""

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")


def to_segment(text: str) -> str:
    """Canonical path segment of an id."""
    if _PLAIN.fullmatch(text):
        return text
    return "~" + base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).rstrip(b"=").decode("ascii")


def from_segment(segment: str, given: str | None = None) -> str:
    """Id of a path segment; `given` is the query parameter of the same name. ValueError says what is wrong with it."""
    if given is not None and segment != "~":
        raise ValueError("is given twice; put ~ into the path where the query parameter names it")
    if given is not None:
        text = given
    elif segment.startswith("~"):
        text = _decode(segment[1:])
    else:
        text = segment
    if len(text.encode("utf-8", "surrogatepass")) > ID_BYTES_MAX:
        raise ValueError(f"is longer than {ID_BYTES_MAX} bytes")
    return text


def _decode(encoded: str) -> str:
    try:
        data = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
        text = data.decode("utf-8")
    except (binascii.Error, ValueError):
        raise ValueError("begins with ~ and is not base64url of UTF-8") from None
    if to_segment(text) != "~" + encoded and base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii") != encoded:
        raise ValueError("begins with ~ and is not canonical base64url")
    return text


def sort_key(an_id: str) -> str:
    """An id in a sort key: ids may be 32 KiB long, a cursor may not."""
    return blake2b(an_id.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
