"""Region and endpoint of an S3-compatible store, and where delta-rs looks for credentials: the standard AWS chain.

One client is used for everything, delta-rs's own, so that tables and single objects are found by the same rules. It
looks for credentials itself, in the order of AWS's tools: environment, profile, web identity, container, machine. What
it would not find in a profile is looked up here:

    endpoint   AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, endpoint_url of the profile; else Amazon's
    region     AWS_REGION, AWS_DEFAULT_REGION, region of the profile; else us-east-1

No secret is read here, and none is in what this gives.
Truth: the AWS SDKs and Tools Reference Guide (shared config files, service-specific endpoints); delta-rs,
`crates/aws/src/storage.rs`: where an endpoint is given it looks at the environment only, unless
AWS_FORCE_CREDENTIAL_LOAD is set.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

DEFAULT_REGION = "us-east-1"
"""Of AWS's own tools where a request needs one; stores of one's own do not look at it."""

CONNECT_TIMEOUT = "5s"
REQUEST_TIMEOUT = "30s"
"""As long as delta-rs waits by default, said because a driver's batch and an API's answer wait for it."""


def delta_options(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Storage options of delta-rs."""
    environ = os.environ if environ is None else environ
    profile = _profile(environ)
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or profile.get("region", DEFAULT_REGION)
    options = {"aws_region": region, "timeout": REQUEST_TIMEOUT, "connect_timeout": CONNECT_TIMEOUT}
    endpoint = endpoint_of(environ, profile)
    if endpoint:
        options["aws_endpoint"] = endpoint
        if urlsplit(endpoint).scheme == "http":
            options["aws_allow_http"] = "true"  # whoever writes http:// has chosen it
        if not environ.get("AWS_ACCESS_KEY_ID"):
            options["AWS_FORCE_CREDENTIAL_LOAD"] = "true"
    return options


def endpoint_of(environ: Mapping[str, str] | None = None, profile: Mapping[str, str] | None = None) -> str:
    """Address of the store; empty for Amazon's."""
    environ = os.environ if environ is None else environ
    if environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true":
        return ""
    profile = _profile(environ) if profile is None else profile
    return environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL") or profile.get("endpoint_url", "")


def _profile(environ: Mapping[str, str]) -> dict[str, str]:
    """Region and endpoint of the profile in use; the credentials beside them are not ours to read."""
    path = environ.get("AWS_CONFIG_FILE") or str(Path(environ.get("HOME", "~")).expanduser() / ".aws" / "config")
    name = environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE") or "default"
    file = configparser.RawConfigParser(strict=False)
    try:
        file.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):
        return {}  # delta-rs, which looks there for credentials, will say so
    section = name if name == "default" else f"profile {name}"
    if section not in file:
        return {}
    return {key: file[section][key] for key in ("region", "endpoint_url") if key in file[section]}
