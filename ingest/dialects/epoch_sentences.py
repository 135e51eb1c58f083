"""The coordinator's sentences about groups that have epochs: consumer, share and streams groups of 4.0 to 4.4, and of
the preview of KIP-848 in 3.7 to 3.9, whose words are given with ids of other messages.

Each with the release that has it first and a recorded one, with the ids of the recording, which a test reads back. What
a sentence means is decided in `kardia/observe/sentences/epochs.py`. Member ids of these protocols are whatever a client
chose: Java sends 22 characters of base64 for URLs, librdkafka of plain base64, with `/` and `+`. An instance id that
ends in ` temporarily` makes a leave look like one for a moment: nobody but that client is concerned.
Truth: `GroupMetadataManager.java` of 4.0.2, 4.1.2, 4.2.1 and 4.3.1, and the constants of its class in 4.4.0,
3.7.2, 3.8.1 and 3.9.2.
"""

from __future__ import annotations

from ingest.dialects.sentence import Sentence, pattern

_NUMBER = r"[0-9]+"
_GROUP = r"\[GroupId (?P<group>.*?)\] "
_STREAMS = r"\[GroupId (?P<group>.*?)\]\[MemberId (?P<member>.*?)\] "
_STATIC = r"Static member (?P<member>.*?) with instance id (?P<instance>.*?)"
_EPOCH = rf"(?P<generation>{_NUMBER})"


SENTENCES: tuple[Sentence, ...] = (
    Sentence(
        "4.0",
        "[GroupId h08] Bumped group epoch to 4 with metadata hash 5969500235963027194.",
        pattern(
            "epoch_raised",
            "Bumped group epoch to ",
            rf"{_GROUP}Bumped group epoch to {_EPOCH}(?: with metadata hash -?{_NUMBER})?\.",  # the hash from 4.1 on
        ),
    ),
    Sentence(
        "4.1",
        "[GroupId st01][MemberId dXXpQ_9QQ_OooDvCXc7B8A] Bumped streams group epoch to 3 with metadata hash "
        "981717454180979197 and validated topic epoch 0.",
        pattern(
            "epoch_raised",
            "Bumped streams group epoch to ",
            rf"{_STREAMS}Bumped streams group epoch to {_EPOCH} with metadata hash -?{_NUMBER}"
            rf"(?: and validated topic epoch -?{_NUMBER})?\.",
            "][MemberId ",
        ),
    ),
    Sentence(
        "4.0",
        "[GroupId h08] Computed a new target assignment for epoch 4 with 'uniform' assignor in 0ms.",
        pattern(
            "target_computed",
            "Computed a new target assignment for epoch ",
            # A share group of 4.0 tells the assignment as well.
            rf"{_GROUP}Computed a new target assignment for epoch {_EPOCH} with '[^']*' assignor"
            rf"(?: in {_NUMBER}ms)?[.:].*",  # 3.7 tells no time
        ),
    ),
    Sentence(
        "4.0",
        "[GroupId h07] Member FWUhaD2GRUSVEbw/kvH+uQ joins the consumer group using the consumer protocol.",
        pattern(
            "epoch_member_joined",
            " joins the consumer group using the ",
            rf"{_GROUP}Member (?P<member>.*?) joins the consumer group using the "
            r"(?P<reason>consumer|classic) protocol\.",
            "] Member ",
        ),
    ),
    Sentence(
        "4.0",
        "[GroupId h07] Static member VcTi9tW2RuOfsI8d7c7t1A with instance id i-a joins the consumer group using the "
        "consumer protocol.",
        pattern(
            "epoch_member_joined",
            " joins the consumer group using the ",
            rf"{_GROUP}{_STATIC} joins the consumer group using the (?P<reason>consumer|classic) protocol\.",
            "] Static member ",
            " with instance id ",
        ),
    ),
    Sentence(
        "4.0",
        "[GroupId sg01] Member au3HQl2WRRKyqPbhnulN9g joins the share group using the share protocol.",
        pattern(
            "epoch_member_joined",
            " joins the share group using the ",
            rf"{_GROUP}Member (?P<member>.*?) joins the share group using the (?P<reason>share) protocol\.",
            "] Member ",
        ),
    ),
    Sentence(
        "4.1",
        "[GroupId st01][MemberId ceAtS0_vSWCnurEgCbQdhA] Member joins the streams group.",
        pattern(
            "epoch_member_joined",
            " joins the streams group.",
            rf"{_STREAMS}Member joins the (?P<reason>streams) group\.",
            "][MemberId ",
        ),
    ),
    Sentence(
        "4.4",
        "[GroupId st01][MemberId ceAtS0_vSWCnurEgCbQdhA] Static member ceAtS0_vSWCnurEgCbQdhA with instance id i-a "
        "joins the streams group.",
        pattern(
            "epoch_member_joined",
            " joins the streams group.",
            rf"{_STREAMS}Static member .*? with instance id (?P<instance>.*?) joins the (?P<reason>streams) group\.",
            "][MemberId ",
            " with instance id ",
        ),
    ),
    Sentence(
        "4.0",
        "[GroupId h06] Static member with instance id i-a re-joins the consumer group using the consumer protocol. "
        "Created a new member HoDmCIcZQJqfC5WVPW5_NA to replace the existing member EBSO6lEDTMm1Ri0NuHieEA.",
        pattern(
            "epoch_member_replaced",
            " to replace the existing member ",
            rf"{_GROUP}Static member with instance id (?P<instance>.*?) re-joins the consumer group using the "
            r"(?P<reason>consumer|classic) protocol\. Created a new member (?P<member>.*?) to replace the existing "
            r"member (?P<other>.*?)\.",
            "] Static member with instance id ",
            " to replace the existing member ",
        ),
    ),
    Sentence(
        "4.4",
        "[GroupId st01][MemberId HoDmCIcZQJqfC5WVPW5_NA] Static member with instance id i-a re-joins the streams group "
        "using the streams protocol. Created a new member HoDmCIcZQJqfC5WVPW5_NA to replace the existing member "
        "EBSO6lEDTMm1Ri0NuHieEA.",
        pattern(
            "epoch_member_replaced",
            " to replace the existing member ",
            rf"{_STREAMS}Static member with instance id (?P<instance>.*?) re-joins the streams group using the "
            r"(?P<reason>streams) protocol\. Created a new member .*? to replace the existing member (?P<other>.*?)\.",
            "][MemberId ",
            " to replace the existing member ",
        ),
    ),
    Sentence(
        "4.0",
        "[GroupId h05] Member rzR5URdURkWoQhQX11C1ww left the consumer group.",
        pattern(
            "epoch_member_left",
            " left the consumer group.",
            rf"{_GROUP}Member (?P<member>.*?) left the (?P<reason>consumer) group\.",
            "] Member ",
        ),
    ),
    Sentence(
        "4.0",
        "[GroupId h06] Static member vY7EsGKDTSWVczfhuSUyZA with instance id i-c left the consumer group.",
        pattern(
            "epoch_member_left",
            " left the consumer group.",
            rf"{_GROUP}{_STATIC}(?<! temporarily) left the (?P<reason>consumer) group\.",
            "] Static member ",
            " with instance id ",
        ),
    ),
    Sentence(
        "4.0",
        "[GroupId sg01] Member 7HDB_pZMRneukuH8VSMvFQ left the share group.",
        pattern(
            "epoch_member_left",
            " left the share group.",
            rf"{_GROUP}Member (?P<member>.*?) left the (?P<reason>share) group\.",
            "] Member ",
        ),
    ),
    Sentence(
        "4.1",
        "[GroupId st01][MemberId dXXpQ_9QQ_OooDvCXc7B8A] Member dXXpQ_9QQ_OooDvCXc7B8A left the streams group.",
        pattern(
            "epoch_member_left",
            " left the streams group.",
            rf"{_STREAMS}Member .*? left the (?P<reason>streams) group\.",
            "][MemberId ",
        ),
    ),
    Sentence(
        "4.4",
        "[GroupId st01][MemberId dXXpQ_9QQ_OooDvCXc7B8A] Static member dXXpQ_9QQ_OooDvCXc7B8A with instance id i-a "
        "left the streams group.",
        pattern(
            "epoch_member_left",
            " left the streams group.",
            rf"{_STREAMS}Static member .*? with instance id (?P<instance>.*?)(?<! temporarily) left the "
            r"(?P<reason>streams) group\.",
            "][MemberId ",
            " with instance id ",
        ),
    ),
    # A member that speaks the classic protocol in a consumer group; `reason` is its own words.
    Sentence(
        "4.0",
        "[GroupId h11] Dynamic member k11-b-99c240a0-e44a-427b-9d43-05c9f9f7b4b3 has left group through explicit "
        "`LeaveGroup` request; client reason: consumer poll timeout has expired.",
        pattern(
            "epoch_member_left",
            " has left group through explicit `LeaveGroup` request; ",
            rf"{_GROUP}Dynamic member (?P<member>.*?) has left group through explicit `LeaveGroup` request; "
            r"client reason: (?P<reason>.*)",
            "] Dynamic member ",
            " has left group through explicit `LeaveGroup` request; ",
        ),
    ),
    Sentence(
        "4.0",
        "[GroupId h11] Static member k11-b-99c240a0-e44a-427b-9d43-05c9f9f7b4b3 with instance id i-b has left group "
        "through explicit `LeaveGroup` request; client reason: member was removed by an admin",
        pattern(
            "epoch_member_left",
            " has left group through explicit `LeaveGroup` request; ",
            rf"{_GROUP}{_STATIC} has left group through explicit `LeaveGroup` request; client reason: (?P<reason>.*)",
            "] Static member ",
            " with instance id ",
            " has left group through explicit `LeaveGroup` request; ",
        ),
    ),
    Sentence(
        "4.0",
        "[GroupId h06] Static member EBSO6lEDTMm1Ri0NuHieEA with instance id i-a temporarily left the consumer group.",
        pattern(
            "epoch_member_away",
            " temporarily left the consumer group.",
            rf"{_GROUP}{_STATIC} temporarily left the (?P<reason>consumer) group\.",
            "] Static member ",
            " with instance id ",
        ),
    ),
    Sentence(
        "4.4",
        "[GroupId st01][MemberId EBSO6lEDTMm1Ri0NuHieEA] Static member EBSO6lEDTMm1Ri0NuHieEA with instance id i-a "
        "temporarily left the streams group.",
        pattern(
            "epoch_member_away",
            " temporarily left the streams group.",
            rf"{_STREAMS}Static member .*? with instance id (?P<instance>.*?) temporarily left the "
            r"(?P<reason>streams) group\.",
            "][MemberId ",
            " with instance id ",
        ),
    ),
    Sentence(
        "4.0",
        "[GroupId h08] Member oab1VRrxQeKoI6bq9b9VMw fenced from the group because it failed to transition from epoch "
        "2 within 8000ms.",
        pattern(
            "epoch_member_fenced",
            " fenced from the group because ",
            rf"{_GROUP}(?:Member|Streams member) (?P<member>.*?) fenced from the group because "
            r"(?P<reason>the member session expired|the classic member failed to join within the rebalance timeout"
            rf"|the member failed to sync within timeout|it failed to transition from epoch {_NUMBER} within "
            rf"{_NUMBER}ms)\.{{1,2}}",  # of a streams member two full stops, 4.1 to 4.4
            "ember ",
        ),
    ),
    Sentence(
        "4.0",
        "[GroupId h06] Static member ItX9efuuTZCfw5CM9YhoSw with instance id i-b cannot join the group because the "
        "instance id is owned by member McW0pzO9Rya9Etoc_4OQXg.",
        pattern(
            "instance_in_use",
            " cannot join the group because the instance id is ",
            rf"{_GROUP}{_STATIC} cannot join the group because the instance id is (?:is )?owned by "
            r"member (?P<other>.*?)\.",
            "] Static member ",
            " with instance id ",
        ),
    ),
    Sentence(
        "4.0",
        "[GroupId h06] Static member ItX9efuuTZCfw5CM9YhoSw with instance id i-b is fenced by existing member "
        "McW0pzO9Rya9Etoc_4OQXg.",
        pattern(
            "epoch_instance_fenced",
            " is fenced by existing member ",
            rf"{_GROUP}{_STATIC} is fenced by existing member (?P<other>.*?)\.",
            "] Static member ",
            " with instance id ",
            " is fenced by existing member ",
        ),
    ),
    Sentence(
        "4.0",
        "[GroupId h11] Converted the classic group to a consumer group.",
        pattern(
            "upgraded",
            "] Converted the ",
            rf"{_GROUP}Converted the (?:empty )?classic group to a (?P<reason>consumer|streams) group\.",
        ),
    ),
    Sentence(
        "4.0",
        "[GroupId h11] Converted the consumer group to a classic group.",
        pattern(
            "downgraded",
            "] Converted the ",
            rf"{_GROUP}Converted the (?:empty )?(?P<reason>consumer|streams) group to a classic group\.",
        ),
    ),
    Sentence(
        "4.0",
        "[GroupId sg01] Member 7HDB_pZMRneukuH8VSMvFQ new assignment state: epoch=2, previousEpoch=0, state=STABLE, "
        "assignedPartitions=[].",
        pattern(
            "epoch_member_reached",
            " new assignment state: epoch=",
            rf"{_GROUP}Member (?P<member>.*?) new assignment state: epoch={_EPOCH}, previousEpoch=-?{_NUMBER}, "
            r"state=(?P<reason>STABLE|UNREVOKED_PARTITIONS|UNRELEASED_PARTITIONS|UNKNOWN), assignedPartitions=.*\.",
            "] Member ",
        ),
    ),
    Sentence(
        "4.1",
        "[GroupId st01][MemberId dXXpQ_9QQ_OooDvCXc7B8A] Member's new assignment state: epoch=3, previousEpoch=0, "
        "state=STABLE, assignedTasks=(active=[], standby=[], warmup=[]) and tasksPendingRevocation=(active=[], "
        "standby=[], warmup=[]).",
        pattern(
            "epoch_member_reached",
            " new assignment state: epoch=",
            rf"{_STREAMS}Member's new assignment state: epoch={_EPOCH}, previousEpoch=-?{_NUMBER}, "
            r"state=(?P<reason>STABLE|UNREVOKED_TASKS|UNRELEASED_TASKS|UNKNOWN), assignedTasks=.*\.",
            "][MemberId ",
        ),
    ),
    Sentence(
        "4.0",
        "Loaded consumer group h08 with 2 members.",
        pattern(
            "epoch_group_loaded",
            " group ",
            r"Loaded (?:consumer|share|streams) group (?P<group>.*) with (?P<reason>\d+ members)\.",
        ),
    ),
    Sentence(
        "4.0",
        "[GroupId=h08] Unloaded group metadata for group epoch 5.",
        pattern(
            "epoch_group_unloaded",
            "] Unloaded group metadata for group epoch ",
            rf"\[GroupId=(?P<group>.*)\] Unloaded group metadata for group epoch {_EPOCH}\.",
        ),
    ),
    # The preview of KIP-848.
    Sentence(
        "3.7",
        "[GroupId h07] Member FWUhaD2GRUSVEbw/kvH+uQ joins the consumer group.",
        pattern(
            "epoch_member_joined",
            " joins the consumer group.",
            rf"{_GROUP}Member (?P<member>.*?) joins the (?P<reason>consumer) group\.",
            "] Member ",
        ),
    ),
    Sentence(
        "3.7",
        "[GroupId h07] Static member VcTi9tW2RuOfsI8d7c7t1A with instance id i-a joins the consumer group.",
        pattern(
            "epoch_member_joined",
            " joins the consumer group.",
            rf"{_GROUP}{_STATIC} joins the (?P<reason>consumer) group\.",
            "] Static member ",
            " with instance id ",
        ),
    ),
    # Whom it replaces these releases do not say: who has its instance id.
    Sentence(
        "3.7",
        "[GroupId h06] Static member HoDmCIcZQJqfC5WVPW5_NA with instance id i-a re-joins the consumer group.",
        pattern(
            "epoch_member_replaced",
            " re-joins the consumer group.",
            rf"{_GROUP}{_STATIC} re-joins the (?P<reason>consumer) group\.",
            "] Static member ",
            " with instance id ",
        ),
    ),
    Sentence(
        "3.8",
        "[GroupId h06] Static member with unknown member id and instance id i-a re-joins the consumer group. Created a "
        "new member HoDmCIcZQJqfC5WVPW5_NA to replace the existing member EBSO6lEDTMm1Ri0NuHieEA.",
        pattern(
            "epoch_member_replaced",
            " to replace the existing member ",
            rf"{_GROUP}Static member with unknown member id and instance id (?P<instance>.*?) re-joins the "
            r"(?P<reason>consumer) group\. Created a new member (?P<member>.*?) to replace the existing member "
            r"(?P<other>.*?)\.",
            " and instance id ",
            " to replace the existing member ",
        ),
    ),
    Sentence(
        "3.7",
        "[GroupId h06] Static Member vY7EsGKDTSWVczfhuSUyZA with instance id i-c left the consumer group.",
        pattern(
            "epoch_member_left",
            " left the consumer group.",
            r"\[GroupId (?P<group>.*?)\] Static Member (?P<member>.*?) with instance id (?P<instance>.*?)"
            r"(?<! temporarily) left the (?P<reason>consumer) group\.",
            "] Static Member ",
            " with instance id ",
        ),
    ),
    Sentence(
        "3.7",
        "[GroupId h06] Static Member EBSO6lEDTMm1Ri0NuHieEA with instance id i-a temporarily left the consumer group.",
        pattern(
            "epoch_member_away",
            " temporarily left the consumer group.",
            r"\[GroupId (?P<group>.*?)\] Static Member (?P<member>.*?) with instance id (?P<instance>.*?) temporarily "
            r"left the (?P<reason>consumer) group\.",
            "] Static Member ",
            " with instance id ",
        ),
    ),
    Sentence(
        "3.8",
        "[Group h11] Dynamic Member k11-b-99c240a0-e44a-427b-9d43-05c9f9f7b4b3 has left group through explicit "
        "`LeaveGroup` request; client reason: consumer poll timeout has expired.",
        pattern(
            "epoch_member_left",
            " has left group through explicit `LeaveGroup` request; ",
            r"\[Group (?P<group>.*?)\] Dynamic Member (?P<member>.*?) has left group through explicit `LeaveGroup` "
            r"request; client reason: (?P<reason>.*)",
            "] Dynamic Member ",
            " has left group through explicit `LeaveGroup` request; ",
        ),
    ),
    Sentence(
        "3.8",
        "[Group h11] Static Member k11-b-99c240a0-e44a-427b-9d43-05c9f9f7b4b3 with instance id i-b has left group "
        "through explicit `LeaveGroup` request; client reason: member was removed by an admin",
        pattern(
            "epoch_member_left",
            " has left group through explicit `LeaveGroup` request; ",
            r"\[Group (?P<group>.*?)\] Static Member (?P<member>.*?) with instance id (?P<instance>.*?) has left group "
            r"through explicit `LeaveGroup` request; client reason: (?P<reason>.*)",
            "] Static Member ",
            " with instance id ",
            " has left group through explicit `LeaveGroup` request; ",
        ),
    ),
)
"""`reason` is the protocol, or the coordinator's own reason."""
