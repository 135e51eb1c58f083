"""Has this principal the rights that Kardia needs? Asked of the brokers themselves; and the least ones, to be copied.

Topics say which operations are allowed (KIP-430); a topic that is not there yet is created with `validate_only`, which
changes nothing; a group that nobody has is described. Reads only.
"""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stub does not list them
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
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


def findings(admin: AdminClient, bootstrap: str, principal: str, topic: str, *, configs: bool) -> list[Finding]:
    """What is missing, with the lines that give it. `configs`: whether the brokers' settings could be read."""
    who = principal or "this principal"
    if not has_authorizer(admin, topic):
        sentence = "The brokers have no authorizer, so whoever reaches them may do everything. No right is missing."
        return [Finding(Level.GOOD, f"rights of {who}", sentence)]
    lacking = [right for right in least(topic) if not _has(admin, right, configs=configs)]
    name = principal or "User:NAME"
    if not lacking:
        found = Finding(Level.GOOD, f"rights of {who}", "It has every right that Kardia needs.")
    else:
        lacks = "; ".join(f"{right.operation} on {_named(right)} ({right.needed_for})" for right in lacking)
        found = Finding(Level.BAD, f"rights of {who}", f"It lacks: {lacks}.", lines(lacking, name, bootstrap))
    sentence = "The least rights that Kardia needs, for one principal of its own or for one for each part:"
    return [found, Finding(Level.NOTE, f"rights of {who}", sentence, lines(least(topic), name, bootstrap))]


def lines(rights: Sequence[Right], principal: str, bootstrap: str) -> tuple[str, ...]:
    """Commands, each below what it is for."""
    return tuple(line for right in rights for line in (f"# {right.needed_for}", right.line(principal, bootstrap)))


def has_authorizer(admin: AdminClient, topic: str) -> bool:
    """Whether the brokers ask who may do what. Only they without one say that there is no security."""
    of_topic = AclBindingFilter(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        None,  # type: ignore[arg-type]  # any; its stub does not say so
        None,  # type: ignore[arg-type]
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    try:
        admin.describe_acls(of_topic, request_timeout=TIMEOUT_S).result(TIMEOUT_S)
    except KafkaException as error:
        return bool(error.args[0].code() != KafkaError.SECURITY_DISABLED)
    return True


def may_describe_groups(admin: AdminClient) -> bool:
    """Whether any group may be described. Who may not is told of no group, as if there were none."""
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


def _has(admin: AdminClient, right: Right, *, configs: bool) -> bool:
    if right.resource == "cluster":
        return configs
    if right.resource == "group":
        return may_describe_groups(admin) if right.operation == "Describe" else _may_read_group_configs(admin)
    if right.operation == "Describe":
        return may_see_ends(admin)
    if right.operation == "Create":
        return _may_create(admin, right.name)
    # That a topic is not there is told to who may describe it, which is implied by what is asked for here.
    operations = allowed(admin, right.name, TIMEOUT_S)
    return operations is None or _OPERATIONS[right.operation] in operations


def _may_read_group_configs(admin: AdminClient) -> bool:
    """Brokers before 4.0 have no configurations of groups, and say otherwise than that the right is missing."""
    resource = ConfigResource(ResourceType.GROUP, NOBODYS_GROUP)
    try:
        admin.describe_configs([resource], request_timeout=TIMEOUT_S)[resource].result(TIMEOUT_S)
    except KafkaException as error:
        return bool(error.args[0].code() != KafkaError.GROUP_AUTHORIZATION_FAILED)
    return True


def _may_create(admin: AdminClient, topic: str) -> bool:
    asked = admin.create_topics([NewTopic(topic, 1)], validate_only=True, request_timeout=TIMEOUT_S)[topic]
    try:
        asked.result(TIMEOUT_S)
    except KafkaException as error:
        refused = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
        return error.args[0].code() not in refused
    return True
