"""The first connection of a client: answered, or refused with the reason, within a time and without a flood.

Everything that speaks to a cluster begins here, so that a wrong password is one sentence and not a minute of waiting:
what waiting does not mend ends it at the second refusal. While nobody answers the library tries again with its back-off
(`rendering.GENTLE`). A client of its own is used, whose lines are not shown: its errors become the sentence.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stub does not list them
    AclOperation,
    AdminClient,
    ClusterMetadata,
)

from ingest.clients.log import QUIET
from ingest.errors import AwayError, RefusedError, SettingsError
from ingest.security.diagnosis import Reason, reason

T = TypeVar("T")

LOOK_S = 0.5
"""How soon a refusal is noticed."""

LOOKS_AFTER_S = 1.0
"""When the reason is looked for first; then after twice that time, and so on: each look is a connection or two."""

_TELLING = 2
"""Refusals after which it is looked for at once: a broker that stops breaks one connection, and is then away."""

_HEARD = 8


def made(kind: Callable[..., T], settings: Mapping[str, Any], **more: Any) -> T:
    """A client of the library, or a sentence about the setting that it does not take."""
    try:
        return kind(dict(settings), **more)
    except (KafkaException, ValueError, TypeError) as error:
        text = str(error.args[0].str() if isinstance(error, KafkaException) else error)
        raise _not_taken(text, settings) from None


def _not_taken(text: str, settings: Mapping[str, Any]) -> SettingsError:
    """Of the library's text nothing is repeated but the name of a setting that the user has given."""
    if "No provider for SASL mechanism GSSAPI" in text:
        return SettingsError(
            "the Kafka library of this installation is built without GSSAPI",
            "sasl.mechanism",
            "librdkafka with libsasl2, which the wheels from PyPI do not have",
            "install it from source against a librdkafka that has it (pip install --no-binary confluent-kafka "
            "confluent-kafka), or use another mechanism",
        )
    named = [name for name in settings if f'"{name}"' in text or f"`{name}`" in text or text.startswith(f"{name} ")]
    what = f"the setting {named[0]} is not taken" if named else "the client settings are not taken"
    return SettingsError(
        f"{what} by the Kafka library",
        "--client-config",
        "names and values that librdkafka has",
        "look the setting up in librdkafka's CONFIGURATION.md, and correct it",
    )


class _Heard:
    """What the library says of its connections."""

    def __init__(self) -> None:
        self.texts: deque[str] = deque(maxlen=_HEARD)
        self.refusals = 0

    def __call__(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            return
        self.texts.append(error.str())
        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
            self.refusals += 1


def connect(
    bootstrap: str, settings: Mapping[str, Any] | None, wait_s: float, option: str = "--bootstrap-server"
) -> tuple[AdminClient, ClusterMetadata]:
    """An admin client that a broker has answered, and what it answered: brokers and the topics that may be seen.

    Raises `RefusedError` for what waiting does not mend, `AwayError` if nobody answers within `wait_s`.
    """
    given = dict(settings or {})
    heard = _Heard()
    admin = made(AdminClient, {**given, "bootstrap.servers": bootstrap, "error_cb": heard}, logger=QUIET)
    began_s = time.monotonic()
    look_s, told = LOOKS_AFTER_S, _TELLING
    while True:
        try:
            return admin, admin.list_topics(timeout=LOOK_S)
        except KafkaException:
            admin.poll(0)
        passed_s = time.monotonic() - began_s
        if heard.refusals < told and passed_s < min(look_s, wait_s):
            continue
        found = reason(bootstrap, given, heard.texts)
        if found.is_final or passed_s >= wait_s:
            del admin  # else it lives, and calls, as long as the error that holds this frame
            kind = RefusedError if found.is_final else AwayError
            raise kind(*_parts(found, bootstrap, option, wait_s))
        look_s, told = 2 * max(look_s, passed_s), 2 * max(told, heard.refusals)


def allowed(admin: AdminClient, topic: str, timeout_s: float) -> frozenset[AclOperation] | None:
    """What may be done with a topic (KIP-430), nothing where it may not even be described; None where brokers do not
    tell, because they are older than 2.3 or there is no such topic."""
    asked = admin.describe_topics(
        TopicCollection([topic]), include_authorized_operations=True, request_timeout=timeout_s
    )
    try:
        return frozenset(asked[topic].result(timeout_s).authorized_operations or ()) or None
    except KafkaException as error:
        is_refused = error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        return frozenset() if is_refused else None


def _parts(found: Reason, bootstrap: str, option: str, wait_s: float) -> tuple[str, str, str, str]:
    expected = "a broker that takes this client" if found.is_final else f"an answer within {wait_s:.0f} s"
    return found.what, f"{option} {bootstrap}", expected, found.next_step
