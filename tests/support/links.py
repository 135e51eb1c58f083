"""Follows the link of an alert: asks the API for what the page would ask for."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

PAGE_OF_GROUP = "/clusters/~/groups/~"


def report_asked(incident_url: str) -> tuple[str, dict[str, str]]:
    """(address, parameters) of the report that the page opens for an incident link: what stands behind its `#` is the
    API path without its prefix, with parameters of the page's own among those of the API."""
    parts = urlsplit(incident_url)
    path, _, query = parts.fragment.partition("?")
    assert path == PAGE_OF_GROUP, incident_url
    given = {name: value for name, [value] in parse_qs(query, strict_parsing=True).items()}
    assert int(given.pop("at")) > 0
    return f"{parts.scheme}://{parts.netloc}/api/v1{path}/incident", given
