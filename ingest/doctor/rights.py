"""Has this principal the rights that Kardia needs? Asked of the brokers themselves; and the least ones, to be copied.

Topics say which operations are allowed (KIP-430); a topic that is not there yet is created with `validate_only`, which
changes nothing; a group that nobody has is described. Reads only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stub does not list them
    AclOperation,
    AdminClient,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from ingest.doctor import Finding, Level
from ingest.security.reach import allowed
from ingest.security.rights import Right, least

TIMEOUT_S = 15.0
NOBODYS_GROUP = "kardia-doctor"
NOBODYS_TOPIC = "kardia-doctor"
"""That it is not there is told to who may describe every topic."""

_OPERATIONS = {"Read": AclOperation.READ, "Write": AclOperation.WRITE}


def findings(
    admin: AdminClient, bootstrap: str, principal: str, topic: str, settings: Mapping[str, str] | None
) -> list[Finding]:
    """What is missing, with the lines that give it. `settings`: of a broker, None if they could not be read."""
    who = principal or "this principal"
    if is_open(settings):
        sentence = "The brokers have no authorizer, so whoever reaches them may do everything. No right is missing."
        return [Finding(Level.GOOD, f"rights of {who}", sentence)]
    has = {right: _has(admin, right, settings) for right in least(topic)}
    needed = [right for right, it in has.items() if it is not None]
    lacking = [right for right, it in has.items() if it is False]
    name = principal or "User:NAME"
    if lacking:
        sentence = f"It lacks: {_listed(lacking)}."
        found = [Finding(Level.BAD, f"rights of {who}", sentence, lines(lacking, name, bootstrap))]
        if len(lacking) > REASONS_MAX:
            return found  # most of the lines stand there
    else:
        found = [Finding(Level.GOOD, f"rights of {who}", "It has every right that Kardia needs.")]
    sentence = "The least rights that Kardia needs, for one principal of its own or for one for each part:"
    return [*found, Finding(Level.NOTE, f"rights of {who}", sentence, lines(needed, name, bootstrap))]


REASONS_MAX = 2
"""Of more rights the reasons stand with the lines alone."""


def _listed(lacking: Sequence[Right]) -> str:
    reasons = len(lacking) <= REASONS_MAX
    return "; ".join(
        f"{right.operation} on {_named(right)}" + (f" ({right.needed_for})" if reasons else "") for right in lacking
    )


def lines(rights: Sequence[Right], principal: str, bootstrap: str) -> tuple[str, ...]:
    """Commands, each below what it is for."""
    return tuple(line for right in rights for line in (f"# {right.needed_for}", right.line(principal, bootstrap)))


def is_open(settings: Mapping[str, str] | None) -> bool:
    """Whether the brokers ask nobody who may do what: their settings can be read, and name no authorizer.

    To who describes rights they would say so themselves (SECURITY_DISABLED), but librdkafka's client makes an empty
    list of that answer."""
    return settings is not None and settings.get("authorizer.class.name") == ""


def may_describe_groups(admin: AdminClient, settings: Mapping[str, str] | None) -> bool:
    """Whether any group may be described. Who may not is told of no group, as if there were none. `settings`: as above.

    The question needs a coordinator, so a broker that has no __consumer_offsets yet makes it: where everybody may ask,
    it is left out, and nothing of the cluster changes."""
    if is_open(settings):
        return True
    asked = admin.describe_consumer_groups([NOBODYS_GROUP], request_timeout=TIMEOUT_S)[NOBODYS_GROUP]
    try:
        asked.result(TIMEOUT_S)
    except KafkaException as error:
        return bool(error.args[0].code() != KafkaError.GROUP_AUTHORIZATION_FAILED)
    return True


def may_see_ends(admin: AdminClient) -> bool:
    """Whether every topic may be described, and so its ends be asked for."""
    return allowed(admin, NOBODYS_TOPIC, TIMEOUT_S) != frozenset()


def _named(right: Right) -> str:
    return f"{right.resource.capitalize()}:{right.name}" if right.name else right.resource.capitalize()


def _has(admin: AdminClient, right: Right, settings: Mapping[str, str] | None) -> bool | None:
    """Whether this principal has it; None where these brokers know no such right."""
    if right.resource == "cluster":
        return settings is not None
    if right.resource == "group":
        return may_describe_groups(admin, settings) if right.operation == "Describe" else _may_read_group_configs(admin)
    if right.operation == "Describe":
        return may_see_ends(admin)
    if right.operation == "Create":
        return _may_create(admin, right.name)
    return _may(admin, right.operation, right.name)


def may_read(admin: AdminClient, topic: str) -> bool:
    """Whether a topic may be read."""
    return _may(admin, "Read", topic)


def _may(admin: AdminClient, operation: str, topic: str) -> bool:
    """That a topic is not there is told to who may describe it, which is implied by what is asked for here."""
    operations = allowed(admin, topic, TIMEOUT_S)
    return operations is None or _OPERATIONS[operation] in operations


def _may_read_group_configs(admin: AdminClient) -> bool | None:
    """None of brokers before 4.0: groups have no configuration there, and kafka-acls.sh refuses a right to it."""
    resource = ConfigResource(ResourceType.GROUP, NOBODYS_GROUP)
    try:
        admin.describe_configs([resource], request_timeout=TIMEOUT_S)[resource].result(TIMEOUT_S)
    except KafkaException as error:
        said = error.args[0].code()
        return None if said == KafkaError.INVALID_REQUEST else bool(said != KafkaError.GROUP_AUTHORIZATION_FAILED)
    return True


def _may_create(admin: AdminClient, topic: str) -> bool:
    asked = admin.create_topics([NewTopic(topic, 1)], validate_only=True, request_timeout=TIMEOUT_S)[topic]
    try:
        asked.result(TIMEOUT_S)
    except KafkaException as error:
        refused = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
        return error.args[0].code() not in refused
    return True
