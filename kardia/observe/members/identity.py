"""Who a member is: its client, its address, and the library it is written with. Keeps what its requests say of it.

The library decides what its traffic proves about its application (`kardia.kafka.libraries`), and it is not always told
at once: franz-go announces itself on one of its connections only, and aiokafka nowhere.
"""

from __future__ import annotations

from kardia.doubts import SURE, Doubt
from kardia.events import Event, Kind
from kardia.kafka.libraries import recognise, recognise_by_versions, recognise_modern
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.state.group import Group, Member


def identify(facts: Facts, group: Group, member: Member, event: Event, protocol_type: str) -> None:
    """Take over who a member is from one of its own requests."""
    facts.take_client(group, member, event.client_id, event.client_host)
    member.connection = event.connection
    if event.software and event.software != member.software:
        member.software = event.software
    if event.group_instance_id:
        member.instance_id = event.group_instance_id
    if event.software or member.library == "unknown":
        if event.kind == Kind.MODERN_HEARTBEAT:
            member.library = recognise_modern(member.software, event.client_id)
        else:
            member.library = recognise(member.software, event.client_id, protocol_type)
    if event.kind == Kind.JOIN:
        member.join_version = event.api_version


def says_library(member: Member, event: Event) -> bool:
    """Whether a heartbeat or a commit tells the library of a member whose JoinGroup did not."""
    return member.library == "unknown" and _library_of(member, event) != "unknown"


def _library_of(member: Member, event: Event) -> str:
    if event.software:
        return recognise(event.software, event.client_id, "")
    return recognise_by_versions(member.join_version, event.api_version) if event.kind == Kind.HEARTBEAT else "unknown"


def learn_library(facts: Facts, group: Group, member: Member, event: Event, at: float) -> None:
    """Take over what `says_library` has found."""
    member.library = _library_of(member, event)
    if event.software:
        member.software = event.software
        facts.emit_member(group, member, at, SURE if member.seen_joining else Doubt.THERE_BEFORE)
