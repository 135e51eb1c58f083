"""Operations and answers of the coordinator model as the request log prints them.

Field names follow the broker's schema (3.9 and 4.x are alike here).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from typing import Any

from kardia.coordinator.classic.operations import Answer, Commit, DeleteGroups, Heartbeat, Join, Leave, Operation, Sync
from kardia.coordinator.consumer.operations import Beat, BeatAnswer, Partition, SyncAnswer
from kardia.coordinator.consumer.wire import write_assignment
from kardia.coordinator.share.operations import ShareBeat
from kardia.coordinator.streams.operations import StreamsAnswer, StreamsBeat, Task, Topology


def request_of(operation: Operation | Beat | ShareBeat | StreamsBeat | None) -> tuple[str, dict[str, Any]]:
    """(name of the API, what the line prints as `request`)."""
    match operation:
        case Beat():
            return "CONSUMER_GROUP_HEARTBEAT", {
                "groupId": operation.group_id,
                "memberId": operation.member_id,
                "memberEpoch": operation.member_epoch,
                "instanceId": operation.instance_id,
                "rackId": operation.rack_id,
                "rebalanceTimeoutMs": operation.rebalance_timeout_ms,
                "subscribedTopicNames": None if operation.names is None else list(operation.names),
                "subscribedTopicRegex": operation.regex,
                "serverAssignor": operation.assignor,
                "topicPartitions": None if operation.owned is None else _by_topic(operation.owned),
            }
        case ShareBeat():
            return "SHARE_GROUP_HEARTBEAT", {
                "groupId": operation.group_id,
                "memberId": operation.member_id,
                "memberEpoch": operation.member_epoch,
                "rackId": operation.rack_id,
                "subscribedTopicNames": None if operation.names is None else list(operation.names),
            }
        case StreamsBeat():
            return "STREAMS_GROUP_HEARTBEAT", _streams_request(operation)
        case Heartbeat():
            return "HEARTBEAT", {
                "groupId": operation.group_id,
                "generationId": operation.generation_id,
                "memberId": operation.member_id,
                "groupInstanceId": operation.group_instance_id,
            }
        case Commit():
            partition = {"partitionIndex": operation.partition, "committedOffset": operation.offset}
            return "OFFSET_COMMIT", {
                "groupId": operation.group_id,
                "generationIdOrMemberEpoch": operation.generation_id,
                "memberId": operation.member_id,
                "groupInstanceId": operation.group_instance_id,
                "topics": [{"name": operation.topic, "partitions": [partition]}],
            }
        case Join():
            rebalance = {"rebalanceTimeoutMs": operation.rebalance_timeout_ms} if operation.version > 0 else {}
            return "JOIN_GROUP", {
                "groupId": operation.group_id,
                "sessionTimeoutMs": operation.session_timeout_ms,
                **rebalance,
                "memberId": operation.member_id,
                "groupInstanceId": operation.group_instance_id,
                "protocolType": operation.protocol_type,
                "protocols": [{"name": name, "metadata": _base64(data)} for name, data in operation.protocols],
                "reason": operation.reason,
            }
        case Sync():
            return "SYNC_GROUP", {
                "groupId": operation.group_id,
                "generationId": operation.generation_id,
                "memberId": operation.member_id,
                "groupInstanceId": operation.group_instance_id,
                "protocolType": operation.protocol_type,
                "protocolName": operation.protocol_name,
                "assignments": [{"memberId": one, "assignment": _base64(data)} for one, data in operation.assignments],
            }
        case Leave():
            return "LEAVE_GROUP", _leave_request(operation)
        case DeleteGroups():
            return "DELETE_GROUPS", {"groupsNames": list(operation.group_ids)}
    raise AssertionError(f"{operation}: a kind of operation that no client sends")


def _leave_request(operation: Leave) -> dict[str, Any]:
    if operation.version < 3:
        return {"groupId": operation.group_id, "memberId": operation.members[0].member_id}
    return {
        "groupId": operation.group_id,
        "members": [
            {"memberId": one.member_id, "groupInstanceId": one.group_instance_id, "reason": one.reason}
            for one in operation.members
        ],
    }


def response_of(
    operation: Operation | Beat | ShareBeat | StreamsBeat | None,
    answer: Answer | BeatAnswer | SyncAnswer | StreamsAnswer,
) -> dict[str, Any]:
    """What the line prints as `response`."""
    response: dict[str, Any] = {"throttleTimeMs": 0, "errorCode": answer.error_code}
    if isinstance(operation, StreamsBeat):
        return _streams_response(answer)
    if isinstance(operation, Beat | ShareBeat):
        return _beat_response(answer)
    if isinstance(answer, SyncAnswer):
        assignment = b"" if answer.error_code else write_assignment(3, answer.assignment)
        return {**response, "protocolType": "consumer", "protocolName": None, "assignment": _base64(assignment)}
    if isinstance(answer, BeatAnswer | StreamsAnswer):
        raise AssertionError(f"{answer}: an answer to a heartbeat for {operation}")
    match operation:
        case Commit():
            partition = {"partitionIndex": operation.partition, "errorCode": answer.error_code}
            return {"throttleTimeMs": 0, "topics": [{"name": operation.topic, "partitions": [partition]}]}
        case Join():
            members = [
                {"memberId": one, "groupInstanceId": instance_id, "metadata": _base64(data)}
                for one, instance_id, data in answer.members
            ]
            response |= {
                "generationId": answer.generation_id,
                "protocolType": operation.protocol_type,
                "protocolName": answer.protocol_name,
                "leader": answer.leader,
                "skipAssignment": answer.skip_assignment,
                "memberId": answer.member_id,
                "members": members,
            }
        case DeleteGroups():
            # A broker that does not lead the shard has no error of a group apart.
            parts = answer.parts or tuple((one, answer.error_code) for one in operation.group_ids)
            return {"throttleTimeMs": 0, "results": [{"groupId": one, "errorCode": error} for one, error in parts]}
        case Sync():
            response |= {"assignment": _base64(answer.assignment)}
        case Leave() if operation.version >= 3:
            response["members"] = [
                {"memberId": one, "groupInstanceId": instance_id, "errorCode": error}
                for one, instance_id, error in answer.left
            ]
        case _:
            pass
    return response


def _streams_request(beat: StreamsBeat) -> dict[str, Any]:
    return {
        "groupId": beat.group_id,
        "memberId": beat.member_id,
        "memberEpoch": beat.member_epoch,
        "endpointInformationEpoch": beat.endpoint_epoch,
        "instanceId": beat.instance_id,
        "rackId": beat.rack_id,
        "rebalanceTimeoutMs": beat.rebalance_timeout_ms,
        "topology": None if beat.topology is None else _topology(beat.topology),
        "activeTasks": _by_subtopology(beat.active),
        "standbyTasks": _by_subtopology(beat.standby),
        "warmupTasks": _by_subtopology(beat.warmup),
        "processId": beat.process_id,
        "userEndpoint": None,
        "clientTags": None if beat.tags is None else [],
        "taskOffsets": None,
        "taskEndOffsets": None,
        "shutdownApplication": beat.shutdown,
    }


def _topology(topology: Topology) -> dict[str, Any]:
    parts = [
        {
            "subtopologyId": one.subtopology_id,
            "sourceTopics": list(one.sources),
            "sourceTopicRegex": [],
            "stateChangelogTopics": [],
            "repartitionSinkTopics": [],
            "repartitionSourceTopics": [],
            "copartitionGroups": [],
        }
        for one in topology.subtopologies
    ]
    return {"epoch": topology.epoch, "subtopologies": parts}


def _streams_response(answer: Answer | BeatAnswer | SyncAnswer | StreamsAnswer) -> dict[str, Any]:
    well = isinstance(answer, StreamsAnswer) and not answer.error_code
    told = answer if isinstance(answer, StreamsAnswer) and well else StreamsAnswer(0, 0, 0)
    return {
        "throttleTimeMs": 0,
        "errorCode": answer.error_code,
        "errorMessage": None if well else "refused",
        "memberId": told.member_id,
        "memberEpoch": told.member_epoch,
        "heartbeatIntervalMs": told.heartbeat_interval_ms,
        "acceptableRecoveryLagLegacy": 0,
        "taskOffsetIntervalMs": 60_000,
        "status": None if told.statuses is None else [{"statusCode": one, "statusDetail": ""} for one in told.statuses],
        "activeTasks": _by_subtopology(told.active),
        "standbyTasks": _by_subtopology(told.standby),
        "warmupTasks": _by_subtopology(told.warmup),
        "endpointInformationEpoch": told.endpoint_epoch,
        "partitionsByUserEndpoint": None,
    }


def _by_subtopology(tasks: Iterable[Task] | None) -> list[dict[str, Any]] | None:
    if tasks is None:
        return None
    found: dict[str, list[int]] = {}
    for subtopology_id, number in sorted(tasks):
        found.setdefault(subtopology_id, []).append(number)
    return [{"subtopologyId": one, "partitions": numbers} for one, numbers in found.items()]


def _beat_response(answer: Answer | BeatAnswer | SyncAnswer | StreamsAnswer) -> dict[str, Any]:
    """A broker that does not lead the shard, or loads it, answers with an error and nothing else."""
    well = isinstance(answer, BeatAnswer) and not answer.error_code
    told = answer if isinstance(answer, BeatAnswer) and well else BeatAnswer(0, 0, 0)
    assignment = None if told.assignment is None else {"topicPartitions": _by_topic(told.assignment)}
    return {
        "throttleTimeMs": 0,
        "errorCode": answer.error_code,
        "errorMessage": None if well else "refused",
        "memberId": told.member_id or None,
        "memberEpoch": told.member_epoch,
        "heartbeatIntervalMs": told.heartbeat_interval_ms,
        "assignment": assignment,
    }


def _by_topic(partitions: Iterable[Partition]) -> list[dict[str, Any]]:
    found: dict[str, list[int]] = {}
    for topic_id, number in sorted(partitions):
        found.setdefault(topic_id, []).append(number)
    return [{"topicId": topic_id, "partitions": numbers} for topic_id, numbers in found.items()]


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
