"""Operations and answers of the coordinator model as the request log prints them.

Field names follow the broker's schema (3.9 and 4.x are alike here).
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from kardia.coordinator.operations import Answer, Commit, DeleteGroups, Heartbeat, Join, Leave, Operation, Sync


def request_of(operation: Operation | None) -> tuple[str, dict[str, Any]]:
    """(name of the API, what the line prints as `request`)."""
    match operation:
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


def response_of(operation: Operation | None, answer: Answer) -> dict[str, Any]:
    """What the line prints as `response`."""
    response: dict[str, Any] = {"throttleTimeMs": 0, "errorCode": answer.error_code}
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


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
