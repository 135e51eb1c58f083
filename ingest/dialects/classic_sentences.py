"""The coordinator's sentences about groups of the classic protocol and partitions of `__consumer_offsets`, 2.0 to 4.4.

Each with the release that has it first and a recorded one, with the ids of the recording; of one that no recording has,
words of the release with ids of another message. A test reads each back. What a sentence means is decided in
`kardia/observe/sentences/`; those about groups that have epochs are in `epoch_sentences`, those that say nothing about
members in `silent_sentences`.
Truth: log statements of Kafka 2.0 to 4.4 (`GroupCoordinator.scala`, `GroupMetadataManager.java` and neighbours).
"""

from __future__ import annotations

from ingest.dialects.sentence import MEMBER, UUID, Sentence, pattern

NUMBER = r"[0-9]+"
_GENERATION = rf"(?P<generation>{NUMBER})"
_PARTITION = rf"(?: \(__consumer_offsets-(?P<partition>{NUMBER})\))?"
_LEFT = "has left group"

SENTENCES: tuple[Sentence, ...] = (
    Sentence(
        "2.1",
        "Preparing to rebalance group g19 in state PreparingRebalance with old generation 2 (reason: "
        "explicit `LeaveGroup` request for () members.).",
        pattern(
            "preparing_rebalance",
            "Preparing to rebalance group ",
            r"(?=[\s\S]*\)\.?\Z)"  # looked at first: else each beginning is followed to the end, in vain
            rf"Preparing to rebalance group (?P<group>.*?) in state \w+ with old generation {_GENERATION}"
            rf"{_PARTITION} \(reason: (?P<reason>.*)\)\.?",
            " with old generation ",
        ),
    ),
    # 2.0 says neither the state nor the reason.
    Sentence(
        "2.0",
        "Preparing to rebalance group g11 with old generation 0 (__consumer_offsets-1)",
        pattern(
            "preparing_rebalance",
            "Preparing to rebalance group ",
            rf"Preparing to rebalance group (?P<group>.*) with old generation {_GENERATION}"
            rf" \(__consumer_offsets-(?P<partition>{NUMBER})\)",
            " with old generation ",
        ),
    ),
    Sentence(
        "2.0",
        "Stabilized group g01 generation 1 with 3 members.",
        pattern(
            "stabilized",
            "Stabilized group ",
            rf"Stabilized group (?P<group>.*?) generation {_GENERATION}{_PARTITION}"
            r"(?: with (?P<reason>\d+ members?))?\.?",
            " generation ",
        ),
    ),
    Sentence(
        "2.0",
        "Assignment received from leader for group g01 for generation 1",
        pattern(
            "assignment_received",
            "Assignment received from leader",
            rf"Assignment received from leader(?: {MEMBER})? for group (?P<group>.*?) for generation {_GENERATION}"
            r"(?:\. The group has (?P<reason>\d+ members), \d+ of which are static)?\.?",
            " for group ",
            " for generation ",
        ),
    ),
    # Of a group that prepares already no sentence about the begin of its rebalance names who joins.
    Sentence(
        "4.0",
        "Pending dynamic member with id k11-c-531d253d-5bc8-47f5-9a11-b4f5a066b78e joins group h11 in "
        "PreparingRebalance state. Adding to the group now.",
        pattern(
            "member_added",
            "Pending dynamic member with id ",
            rf"Pending dynamic member with id {MEMBER} joins group (?P<group>.*) in PreparingRebalance state\."
            r" Adding to the group now\.",
            " joins group ",
        ),
    ),
    Sentence(
        "3.0",
        "Static member with groupInstanceId=i-a and unknown member id joins group g06 in PreparingRebalance state. "
        "Created a new member id i-a-079043da-c234-4686-bdb4-4cde5f1924d5 for this member and add to the group.",
        pattern(
            "member_added",
            "nknown member id joins group ",
            r"(?:Static member with groupInstanceId=(?P<instance>.*?) and|Dynamic [Mm]ember with) unknown member id"
            r" joins group (?P<group>.*?) in (?:PreparingRebalance state|state PreparingRebalance)\. Created a new"
            rf" member id {MEMBER} (?:for this member and add(?:ed)? to the group|and added the member to the group)\.",
            " joins group ",
        ),
    ),
    Sentence(
        "2.0",
        "Member i-b-544a2541-69d7-4f96-bcd7-538d0535b107 in group g06 has failed, removing it from the group",
        pattern(
            "member_failed",
            " has failed, removing it from the group",
            rf"Member {MEMBER} in group (?P<group>.*) has failed, removing it from the group\.?",
            " in group ",
        ),
    ),
    Sentence(
        "4.0",
        "[Group g19] Member i-a-4625aff7-79ab-4889-ab50-d4d8d3849271 has left group through explicit "
        "`LeaveGroup` request; client reason: cleanup",
        pattern(
            "member_left",
            _LEFT,
            rf"\[Group (?P<group>.*?)\] Member {MEMBER} has left group through explicit `LeaveGroup` request"
            r"(?:; client reason: (?P<reason>.*))?",
        ),
    ),
    Sentence(
        "3.0",
        "Member MemberMetadata(memberId=c04-b-45eb9731-3e0a-46e6-9276-e8b19111a570, groupInstanceId=None, "
        "clientId=c04-b, clientHost=/127.0.0.1, sessionTimeoutMs=6000, rebalanceTimeoutMs=8000, "
        "supportedProtocols=List(range, roundrobin)) has left group g04 through explicit `LeaveGroup`; "
        "client reason: not provided",
        pattern(
            "member_left",
            _LEFT,
            rf"Member MemberMetadata\(memberId={MEMBER}, groupInstanceId=(?P<instance>.*?), clientId=.*\)"
            r" has left group (?P<group>.*?) through explicit `LeaveGroup`(?: request)?"
            r"(?:; client reason: (?P<reason>.*))?",
        ),
    ),
    Sentence(
        "2.4",
        "Member[group.instance.id None, member.id c04-b-45eb9731-3e0a-46e6-9276-e8b19111a570] in group g04 "
        "has left, removing it from the group",
        pattern(
            "member_left",
            " has left, removing it from the group",
            rf"Member\[group\.instance\.id (?P<instance>.*?), member\.id {MEMBER}\] in group (?P<group>.*)"
            r" has left, removing it from the group",
        ),
    ),
    Sentence(
        "2.2",
        "Member a,b-60ffb832-ec9c-44f8-b8ee-e91e4089e063 in group odd has left, removing it from the group",
        pattern(
            "member_left",
            " has left, removing it from the group",
            rf"Member {MEMBER} in group (?P<group>.*) has left, removing it from the group",
        ),
    ),
    Sentence(
        "2.2",
        "Pending member c04-b-45eb9731-3e0a-46e6-9276-e8b19111a570 in group g04 has been removed after "
        "session timeout expiration.",
        pattern(
            "pending_member_removed",
            "ending member",
            rf"Pending member {MEMBER} in group (?P<group>.*) has been removed after "
            r"(?P<reason>session timeout expiration)\.?",
        ),
    ),
    Sentence(
        "4.0",
        "[Group g04] Pending member c04-b-45eb9731-3e0a-46e6-9276-e8b19111a570 has left group through "
        "explicit `LeaveGroup` request; client reason: not provided",
        pattern(
            "pending_member_removed",
            _LEFT,
            rf"\[Group (?P<group>.*?)\] Pending member {MEMBER} has left group through explicit `LeaveGroup` request"
            r"(?:; client reason: (?P<reason>.*))?",
        ),
    ),
    Sentence(
        "3.0",
        "Pending member with memberId=c04-b-45eb9731-3e0a-46e6-9276-e8b19111a570 has left group g04 "
        "through explicit `LeaveGroup` request",
        pattern(
            "pending_member_removed",
            _LEFT,
            rf"Pending member with memberId={MEMBER} has left group (?P<group>.*?) through explicit `LeaveGroup`"
            r" request(?:; client reason: (?P<reason>.*))?",
        ),
    ),
    Sentence(
        "2.2",
        "Pending member c04-b-45eb9731-3e0a-46e6-9276-e8b19111a570 is leaving group g04.",
        pattern(
            "pending_member_removed", " is leaving group ", rf"Pending member {MEMBER} is leaving group (?P<group>.*)\."
        ),
    ),
    Sentence(
        "2.0",
        "Group g19 with generation 5 is now empty.",
        pattern(
            "group_empty",
            " is now empty",
            rf"Group (?P<group>.*) with generation {_GENERATION} is now empty{_PARTITION}\.?",
        ),
    ),
    Sentence(
        "2.3",
        "Group g04 is dead, skipping rebalance stage",
        pattern(
            "rebalance_skipped",
            " is dead, skipping rebalance stage",
            r"Group (?P<group>.*) is dead, skipping rebalance stage\.?",
        ),
    ),
    Sentence(
        "2.7",
        "Group g04 removed dynamic members who haven't joined: Set(c04-b-45eb9731-3e0a-46e6-9276-e8b19111a570)",
        pattern(
            "removed_not_joined",
            " dynamic members who haven't joined: ",
            r"Group (?P<group>.*?) removed? dynamic members who haven't joined: "
            r"(?:Hash)?(?:Set)?[\[(](?P<members>.*)[\])]",
        ),
    ),
    Sentence(
        "3.0",
        "Static member with groupInstanceId=i-b and unknown member id joins group g06 in Stable state. "
        "Replacing previously mapped member i-b-90e673fc-8410-4ee6-b57a-231cbab06f94 with this "
        "groupInstanceId.",
        pattern(
            "static_replaced",
            " with this groupInstanceId",
            r"Static member with groupInstanceId=(?P<instance>.*?) and unknown member id joins group (?P<group>.*?)"
            rf" in (?:state )?\w+(?: state)?\. Replacing previously mapped member {MEMBER} with this groupInstanceId\.",
        ),
    ),
    # 2.5 to 2.7; that of 2.3 and 2.4 names no group (`OF_NO_GROUP`).
    Sentence(
        "2.5",
        "Static member Some(i-b) of group g06 with unknown member id rejoins, assigning new member id "
        "i-b-544a2541-69d7-4f96-bcd7-538d0535b107, while old member id "
        "i-b-ac65b48c-5620-45f6-bb4f-7f269e51f288 will be removed.",
        pattern(
            "static_replaced",
            " with unknown member id rejoins, assigning new member id ",
            r"Static member (?P<instance>.*?) of group (?P<group>.*?) with unknown member id rejoins, assigning new "
            rf"member id .*, while old member id {MEMBER} will be removed\.",
        ),
    ),
    # Whoever comes by an id whose seat another one has is refused. No group is named: it is that of who is named.
    Sentence(
        "2.5",
        "given member.id i-b-544a2541-69d7-4f96-bcd7-538d0535b107 is identified as a known static member i-b, but not "
        "matching the expected member.id i-b-ac65b48c-5620-45f6-bb4f-7f269e51f288 during join-group, will respond with "
        "instance fenced error",
        pattern(
            "instance_fenced",
            " is identified as a known static member ",
            rf"given member\.id {MEMBER} is identified as a known static member (?P<instance>.*?), but not matching "
            rf"the expected member\.id (?P<other>.*?{UUID}) during [\w-]+, will respond with instance fenced error",
            " is identified as a known static member ",
            ", but not matching the expected member.id ",
        ),
    ),
    Sentence(
        "3.0",
        "Request memberId=i-b-544a2541-69d7-4f96-bcd7-538d0535b107 for static member with groupInstanceId=i-b is "
        "fenced by current memberId=i-b-ac65b48c-5620-45f6-bb4f-7f269e51f288 during operation heartbeat",
        pattern(
            "instance_fenced",
            " for static member with groupInstanceId=",
            rf"Request memberId={MEMBER} for static member with groupInstanceId=(?P<instance>.*?) is fenced by "
            rf"(?:current|existing) memberId=(?P<other>.*?{UUID}) during operation [\w-]+",
            " for static member with groupInstanceId=",
            " is fenced by ",
        ),
    ),
    Sentence(
        "4.0",
        "Failed to persist metadata for group seats static member chair-3-0c00433c-a711-4fdd-a03c-78d077953185 with "
        "group instance id chair-3 due to CoordinatorWriteEvent(name=classic-group-join) timed out after 5000ms. "
        "Reverting to old member id chair-3-7251d93b-42ab-49f5-8de0-f6c6db041539.",
        pattern(
            "static_reverted",
            " Reverting to old member id ",
            rf"Failed to persist metadata for group (?P<group>.*?) static member {MEMBER} with group instance id "
            rf"(?P<instance>.*?) due to .*\. Reverting to old member id (?P<other>.*?{UUID})\.",
            " static member ",
            " with group instance id ",
        ),
    ),
    Sentence(
        "4.0",
        "Loaded classic group both with 2 members.",
        pattern(
            "group_loaded",
            "Loaded classic group ",
            r"Loaded classic group (?P<group>.*) with (?P<reason>\d+ members)\.",
        ),
    ),
    # One for each record of the group that is read, also of generations before; which one counts the next one says.
    Sentence(
        "2.8",
        "Loaded member MemberMetadata(memberId=node-2-12ba2e49-8bde-40d0-9207-22cef8e52a9b, groupInstanceId="
        "Some(node-2), clientId=inv-2, clientHost=/127.0.0.1, sessionTimeoutMs=20000, rebalanceTimeoutMs=30000, "
        "supportedProtocols=List(range)) in group inventory with generation 1.",
        pattern(
            "member_loaded",
            "Loaded member MemberMetadata(",
            rf"Loaded member MemberMetadata\(memberId={MEMBER}, groupInstanceId=.*\) in group (?P<group>.*) with "
            rf"generation {_GENERATION}\.",
            " in group ",
            " with generation ",
        ),
    ),
    # 2.5 to 2.7, and of static members alone.
    Sentence(
        "2.5",
        "Static member MemberMetadata(memberId=node-2-12ba2e49-8bde-40d0-9207-22cef8e52a9b, groupInstanceId="
        "Some(node-2), clientId=inv-2, clientHost=/127.0.0.1, sessionTimeoutMs=20000, rebalanceTimeoutMs=30000, "
        "supportedProtocols=List(range), ).groupInstanceId of group inventory loaded with member id "
        "node-2-12ba2e49-8bde-40d0-9207-22cef8e52a9b at generation 1.",
        pattern(
            "member_loaded",
            " loaded with member id ",
            rf"Static member .* of group (?P<group>.*) loaded with member id {MEMBER} at generation {_GENERATION}\.",
            " of group ",
            " loaded with member id ",
        ),
    ),
    Sentence(
        "2.0",
        "Loading group metadata for pair with generation 2",
        pattern(
            "group_loaded",
            "Loading group metadata for ",
            rf"Loading group metadata for (?P<group>.*) with generation {_GENERATION}",
        ),
    ),
    Sentence(
        "4.0",
        "[GroupId=g01] Unloading group metadata for generation 3.",
        pattern(
            "group_unloaded",
            "Unloading group metadata for ",
            rf"\[GroupId=(?P<group>.*)\] Unloading group metadata for generation {_GENERATION}\.",
        ),
    ),
    Sentence(
        "2.0",
        "Unloading group metadata for g05 with generation 6",
        pattern(
            "group_unloaded",
            "Unloading group metadata for ",
            rf"Unloading group metadata for (?P<group>.*) with generation {_GENERATION}",
        ),
    ),
    Sentence(
        "2.0",
        "Finished loading offsets and group metadata from __consumer_offsets-1 in 0 milliseconds.",
        pattern(
            "partition_loaded",
            "Finished loading o",
            r"Finished loading of(?:fsets and group metadata| metadata) from "
            rf"__consumer_offsets-(?P<partition>{NUMBER}) (?P<reason>(?:in|with) .*)",
        ),
    ),
    Sentence(
        "4.0",
        "Scheduling loading of metadata from __consumer_offsets-9 with epoch 1",
        pattern(
            "partition_elected",
            "Scheduling loading of metadata from ",
            rf"Scheduling loading of metadata from __consumer_offsets-(?P<partition>{NUMBER}) with epoch {_GENERATION}",
        ),
    ),
    Sentence(
        "2.8",
        "Elected as the group coordinator for partition 9 in epoch 1",
        pattern(
            "partition_elected",
            "Elected as the group coordinator for ",
            rf"Elected as the group coordinator for partition (?P<partition>{NUMBER}) in epoch {_GENERATION}",
        ),
    ),
    Sentence(
        "4.0",
        "Started unloading metadata for __consumer_offsets-9 with epoch OptionalInt[1].",
        pattern(
            "partition_unloaded",
            "Started unloading metadata for ",
            rf"Started unloading metadata for __consumer_offsets-(?P<partition>{NUMBER}) (?P<reason>.*)",
        ),
    ),
    Sentence(
        "2.8",
        "Resigned as the group coordinator for partition 9 in epoch OptionalInt[1]",
        pattern(
            "partition_unloaded",
            "Resigned as the group coordinator for ",
            rf"Resigned as the group coordinator for partition (?P<partition>{NUMBER}) (?P<reason>.*)",
        ),
    ),
    Sentence(
        "2.0",
        "Group g26 transitioned to Dead in generation 2",
        pattern(
            "group_dead",
            " transitioned to Dead in generation ",
            rf"Group (?P<group>.*) transitioned to Dead in generation {_GENERATION}",
        ),
    ),
    # What has no name of its own: told as it stands, for people.
    Sentence(
        "2.3",
        "Group leader [member.id: i-b-544a2541-69d7-4f96-bcd7-538d0535b107, group.instance.id: Some(i-b)] "
        "failed to join before rebalance timeout, while new leader "
        "c04-b-45eb9731-3e0a-46e6-9276-e8b19111a570 was elected.",
        pattern(
            "other",
            "failed to join before ",
            rf"(?P<reason>Group leader \[member(?:\.i|I)d: {MEMBER}, .*?failed to join before .*)",
        ),
    ),
)
"""Order matters only between sentences with the same words."""
