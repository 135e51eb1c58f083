"""The coordinator's sentences that say nothing of who is a member, by the release that has them first. `{}`: any text.
Some say what another one does: who joins a group that does not prepare is named by the begin of the rebalance as
well, in the same ms.

They are known so that one that is not can be told from them: of a new release, of a vendor's broker, or cut in two by a
line break in somebody's id. Nothing is concluded of these, so it does not matter what an id in them looks like; what is
read as a sentence of `classic_sentences` or `epoch_sentences` is not looked for here. The coordinator in Java of 3.7 to
3.9, which had to be asked for then, has words of its own: they are those of 3.7.
Truth: log statements at INFO and above in the packages of the group coordinator of Kafka 2.0 to 3.9 (source) and of 3.7
to 4.4 (byte code, `tests/support/logged.py`).
"""

from __future__ import annotations

SILENT: dict[str, tuple[str, ...]] = {
    "2.0": (
        "Already loading offsets and group metadata from {}",
        "Appending metadata message for group {} generation {} failed due to unexpected error: {}",
        "Appending metadata message for group {} generation {} failed due to {}, returning UNKNOWN error code to "
        "the client",
        "Attempted to load offsets and group metadata from {}, but found no log",
        "BrokerId {} is no longer a coordinator for the group {}. Proceeding cleanup for other alive groups",
        "Error loading offsets from {}",
        "Failed to append {} tombstones to {} for expired/deleted offsets and/or metadata for group {}.",
        "Failed to write empty metadata for group {}: {}",
        "Finished unloading {}. Removed {} cached offsets and {} cached groups.",
        "Group {} has moved away from {} after transaction marker was written but before the cache was updated. "
        "The cache on the new group owner will be updated instead.",
        "Loaded offsets and group metadata from {} with buffer larger ({} bytes) than configured "
        "offsets.load.buffer.size ({} bytes)",
        "Removed {} expired offsets in {} milliseconds.",
        "Removed {} offsets associated with deleted partitions: {}.",
        "Scheduling loading of offsets and group metadata from {}",
        "Scheduling unloading of offsets and group metadata from {}",
        "Shutdown complete.",
        "Shutting down.",
        "Starting up.",
        "Startup complete.",
        "group: {} with leader: {} has received offset commits from consumers as well as transactional "
        "producers. Mixing both types of offset commits will generally result in surprises and should be avoided.",
    ),
    "2.2": (
        "Attempt to add rejoining member {} of group {} in unexpected group state {}",
        "Member id {} was not found in {} during heartbeat expiration.",
        "Received notification of heartbeat expiration for member {} after group {} had already been unloaded or "
        "deleted.",
    ),
    "2.3": (
        "Group {} could not complete rebalance because no members rejoined",
        "Static member joins during {} stage will not trigger rebalance.",
    ),
    "2.4": (
        "Failed to parse Consumer Protocol {}:{} of group {}. Consumer group coordinator is not aware of the "
        "subscribed topics.",
        "The following offsets of the group {} were deleted: {}. A total of {} offsets were removed.",
    ),
    "2.5": (
        "Adding new static member {} to group {} with member id {}.",
        "Member id {} was not found in {} during heartbeat completion check",
        "Sending empty assignment to member {} of {} for generation {} with no errors",
        "Setting empty assignments for members {} of {} for generation {}",
        "Static member joins during Stable stage will not trigger rebalance.",
        "{} Member with unknown member id joins group {} in {} state. Created a new member id {} for this member "
        "and add to the group.",
    ),
    "2.6": (
        "Failed to persist metadata for group {}: {}",
        "Static member which joins during Stable stage and doesn't affect selectProtocol will not trigger rebalance.",
    ),
    "2.8": (
        "Finished unloading {} for coordinator epoch {}. Removed {} cached offsets and {} cached groups.",
        "Not loading offsets and group metadata for {} in epoch {} since current epoch is {}",
        "Not removing offsets and group metadata for {} in epoch {} since current epoch is {}",
        "Received unexpected notification of sync expiration after group {} already transitioned to the {} state.",
        "Received unexpected notification of sync expiration for {} with an old generation {} while the group has {}.",
        "Scheduling loading of offsets and group metadata from {} for epoch {}",
    ),
    "3.0": (
        "Dynamic Member with unknown member id joins group {} in {} state. Created a new member id {} for this "
        "member and add to the group.",
        "Dynamic member with unknown member id joins group {} in {} state. Created a new member id {} and "
        "request the member to rejoin with this id.",
        "Static member with groupInstanceId={} and unknown member id joins group {} in {} state. Created a new "
        "member id {} for this member and add to the group.",
    ),
    "3.3": (
        "Failed to invoke join callback for {} due to {}.",
        "Failed to invoke sync callback for {} due to {}.",
    ),
    "3.4": (
        "Unknown message key with version {} while loading offsets and group metadata from {}. Ignoring it. It "
        "could be a left over from an aborted upgrade.",
    ),
    "3.6": (
        "Coordinator loader is already shutting down.",
        "Loaded metadata from {} with buffer larger ({} bytes) than configured buffer size ({} bytes).",
        "Unknown record type {} while loading offsets and group metadata from {}. Ignoring it. It could be a "
        "left over from an aborted upgrade.",
    ),
    "3.7": (
        "Cannot upgrade classic group {} to consumer group because the online upgrade is disabled.",
        "ConsumerGroupDescribe request {} hit an unexpected exception: {}.",
        "DescribeGroups request {} hit an unexpected exception: {}",
        "Heartbeat request {} hit an unexpected exception: {}",
        "Ignoring load completion from {} because context is in {} state.",
        "Ignoring loading metadata from {} since current epoch {} is larger than or equals to {}.",
        "JoinGroup request {} hit an unexpected exception: {}",
        "LeaveGroup request {} hit an unexpected exception: {}",
        "Member Id {} not found",
        "Removed group {} with an unknown group type {}.",
        "Replaying records to {} failed due to: {}.",
        "SyncGroup request {} hit an unexpected exception: {}",
        "The member {} is assigned more partitions than the maximum possible.",
        "The subscription list is empty, returning an empty assignment",
        "[GroupId {}] Member {} transitioned from {} to {}.",
        "[GroupId {}] Member {} updated its subscribed regex to: {}.",
    ),
    "4.0": (
        "Cannot downgrade consumer group {} to classic group because its group size is greater than classic "
        "group max size.",
        "Cannot downgrade consumer group {} to classic group because the online downgrade is disabled.",
        "Cannot downgrade the consumer group {}: fail to parse the Consumer Protocol consumer.",
        "Cannot load coordinator {} in state {}.",
        "Cannot upgrade classic group {} to consumer group because online upgrade is disabled.",
        "Cannot upgrade classic group {} to consumer group because the embedded consumer protocol is malformed: {}.",
        "Cannot upgrade classic group {} to consumer group because the group does not use the consumer embedded "
        "protocol.",
        "Cannot upgrade classic group {} to consumer group because the group size exceeds the consumer group "
        "maximum size.",
        "Cannot upgrade classic group {} to consumer group: {}.",
        "Closing coordinator runtime.",
        "Completion of event {} failed due to {}.",
        "Coordinator runtime closed.",
        "Coordinator runtime is already shutting down.",
        "Could not delete offsets for deleted partitions {} due to: {}.",
        "Creating simple consumer group {} via manual offset commit.",
        "Draining threw exception.",
        "Dynamic member with unknown member id joins group {} in state {}. Created a new member id {} and added "
        "the member to the group.",
        "Dynamic member with unknown member id joins group {} in {} state. Created a new member id {} and "
        "requesting the member to rejoin with this id.",
        "Event processor closed.",
        "Execution of {} failed due to {}.",
        "Exiting with exception.",
        "Failed to enqueue write event {} for timer {} because the runtime is closed. Ignoring it.",
        "Failed to load metadata from {} with epoch {} due to {}.",
        "Failed to reject event {} due to: {}.",
        "Failed to run event {} due to: {}.",
        "Failed to unload coordinator for {} due to {}.",
        "Failed to unload metadata for {} due to {}.",
        "Failed to unload metadata for {} with epoch {} due to {}.",
        "Finished unloading metadata for {} with epoch {}.",
        "Generated {} tombstone records in {} milliseconds while deleting offsets for partitions {}.",
        "Generated {} tombstone records while cleaning up group metadata in {} milliseconds.",
        "Group coordinator is already running.",
        "Group coordinator is already shutting down.",
        "Group {} could not complete rebalance because no members rejoined.",
        "Ignored load completion from {} because context is in {} state.",
        "Ignored loading metadata from {} since current epoch {} is larger than or equals to {}.",
        "Ignored unloading metadata for {} in epoch {} since current epoch is {}.",
        "Ignored unloading metadata for {} in epoch {} since metadata was never loaded.",
        "Loaded group {} with an unknown group type {}.",
        "Operation {} with {} hit an unexpected exception: {}.",
        "Pending dynamic member with id {} joins group {} in {} state. Adding to the group now.",
        "Received unexpected notification of sync expiration after group {} already transitioned to {} state.",
        "Replaying record {} to {} failed due to: {}.",
        "Scheduling unloading of metadata for {} with epoch {}",
        "Setting empty assignments for members {} of {} for generation {}.",
        "Shutdown completed",
        "Shutting down event processor.",
        "Shutting down. Draining the remaining events.",
        "Skipped the materialization of transactional offset commit {} for producer id {} in group {} with topic "
        "{}, partition {} since its record offset {} is smaller than the record offset {} of the last committed "
        "offset.",
        "Starting",
        "Static member which joins during Stable stage and doesn't affect the selected protocol will not trigger "
        "a rebalance.",
        "Static member with groupInstanceId={} and unknown member id joins group {} in {} state. Created a new "
        "member id {} for this member and added to the group.",
        "The coordinator {} is already active.",
        "The coordinator {} is already loading metadata.",
        "The state machine of the coordinator {} is out of sync with the underlying log. The last written offset "
        "returned is {} while the coordinator expected {}. The coordinator will be reloaded in order to "
        "re-synchronize the state machine.",
        "The write event for the task {} failed due to {}. Ignoring it.",
        "The write event {} for the timer {} failed due to {}. Ignoring it.",
        "The write event {} for the timer {} failed due to {}. Rescheduling it.",
        "Unknown new share group state: {}",
        "Unknown previous share group state: {}",
        "Writing records to {} failed due to: {}.",
        "[GroupId {}] Computed new subscription metadata: {}.",
        "[GroupId {}] Couldn't parse regular expression '{}' due to `{}`. Ignoring it.",
        "[GroupId {}] Couldn't update regular expression due to: {}",
        "[GroupId {}] Creating a simple consumer group via manual offset commit.",
        "[GroupId {}] Dynamic member with unknown member id joins the consumer group. Created a new member id {} "
        "and requesting the member to rejoin with this id.",
        "[GroupId {}] Failed to compute a new target assignment for epoch {}: {}.",
        "[GroupId {}] Member {} updated its subscribed topics to: {}.",
        "[GroupId {}] Scanned {} topics to refresh regular expressions {} in {}ms.",
        "onUnloaded group with an unknown group type {}.",
    ),
    "4.1": (
        "Error deleting share group {} due to error {}",
        "Existing deleting entries found in share group {} - {}",
        "Failed to delete share group state due to: {}",
        "Failed to read summary of the share partition",
        "Failed to retrieve deleteState request parameters from group coordinator for the group {}",
        "Initializing topic {} for share group {} found in deleting state as well, removing from deleting.",
        "Persister initialization failed",
        "Received error while calling initialize state for {} on persister {}.",
        "Received error while deleting share group {} - {}",
        "Result is null for the delete share group state",
        "Result is null for the read state summary",
        "Topic configuration failed for topology epoch {}: {}",
        "Unable to assign active task {} to any member.",
        "Unable to cleanup state for the deleted topics {}",
        "Unable to cleanup topic partitions from share group state metadata",
        "Unable to delete share group partition(s) - {} using request {}",
        "Unable to initialize share group state for {}, {} while altering share group offsets",
        "Unable to initialize share group state partition metadata for {}.",
        "Unable to initialize share group state {}, {}",
        "Valid topic configuration found, but internal topics are missing for topology epoch {}: {}",
        "Valid topic configuration found, topology epoch {} is now initialized.",
        "[GroupId {}] Clearing shutdown requested for the streams application.",
        "[GroupId {}] Computed new metadata hash: {}.",
        "[GroupId {}] Member {} updated its member metdata to {}.",
        "[GroupId {}][MemberId {}] Computed new metadata hash: {}.",
        "[GroupId {}][MemberId {}] Configuring the topology {}",
        "[GroupId {}][MemberId {}] Member initialized the topology with epoch {}",
        "[GroupId {}][MemberId {}] Member joined with stale topology epoch {}",
        "[GroupId {}][MemberId {}] Shutdown requested for the streams application.",
        "{} Error in standby task assignment!",
        "{} There is not enough available capacity. You should increase the number of threads and/or application "
        "instances to maintain the requested number of standby replicas.",
    ),
    "4.2": (
        "Authentication exception",
        "Deserializing record {} from {} failed.",
        "Exhausted max retries ({}) for ListOffsets request for TopicPartitions: {}",
        "Failed to retrieve partition end offsets while calculating share partitions lag for share group - {}",
        "Interrupted while shutting down NetworkPartitionMetadataClient",
        "NetworkPartitionMetadataClient sendThread initialized and started",
        "Partition end offset fetch failed for topicPartition {}",
        "Received error while calling initialize state for {} on persister, errorCode: {}.",
        "Replaying record {} from {} at offset {} with producer id {} and producer epoch {} failed.",
        "Response for ListOffsets for TopicPartitions: {} has no response - {}.",
        "Response for ListOffsets for topicPartitions: {} is null",
        "Some topics for share group id {} were not found in the metadata image - {}",
        "Topic configuration failed for topology epoch {} in {}ms: {}",
        "Valid topic configuration found in {}ms, but internal topics are missing for topology epoch {}: {}",
        "Valid topic configuration found in {}ms, topology epoch {} is now initialized.",
        "Version mismatch exception",
        "[GroupId {}] Cannot compute delayed target assignment: configured topology is not present",
        "[GroupId {}] Group not found during initial rebalance.",
        "[GroupId {}] Skipping delayed target assignment: group is empty",
        "[GroupId {}] updatedMember is unexpectedly null in buildEndpointToPartitions. This is a bug, please "
        "file a JIRA ticket.",
        "[GroupId {}][MemberId {}] Assignment configurations changed to {}. Triggering rebalance.",
        "[GroupId {}][MemberId {}] Member updated its member metdata to {}.",
    ),
    "4.3": (
        "Cannot join the consumer group {} with the classic protocol because the group migration is disabled.",
        "Could not delete offsets for deleted topics {} due to: {}.",
        "Failed to write a batch of {} record(s) to {} because it is larger than the maximum batch size of {} "
        "bytes. This usually means that a single record is too large. Consider increasing the maximum batch size.",
        "Failed to write records to {} due to an unexpected error: {}.",
        "Failed to write the transaction marker to {} because it is too large to be persisted. Consider "
        "increasing the maximum batch size.",
        "Failed to write the transaction marker to {} due to an unexpected error: {}.",
        "Generated {} records in {} milliseconds while cleaning share group state for topics {}.",
        "Generated {} tombstone records in {} milliseconds while deleting offsets for topics {}.",
        "The config '{}' has value {} which exceeds the allowed maximum {}. The effective value will be capped to {}.",
        "The config '{}' has value {} which is below the allowed minimum {}. The effective value will be capped to {}.",
        "The effective {} ({}) for group '{}' is not greater than {} ({}). Check that the broker-level min/max "
        "bounds for session timeout and heartbeat interval do not overlap.",
        "The group config '{}' for group '{}' has value {} which exceeds the broker's allowed maximum {}. The "
        "effective value will be capped to {}.",
        "The group config '{}' for group '{}' has value {} which is below the broker's allowed minimum {}. The "
        "effective value will be capped to {}.",
        "[GroupId {}] Size of assignment epochs {} is not equal to partitions {} for subtopology {}. Using "
        "default epoch {} for all partitions.",
        "[GroupId {}] Size of assignment epochs {} is not equal to partitions {} for topic {}. Using default "
        "epoch {} for all partitions.",
        "[GroupId {}][MemberId {}] Member updated its member metadata to {}.",
        "[GroupId {}][MemberId {}] Topic configuration failed for topology epoch {} in {}ms: {}",
        "[GroupId {}][MemberId {}] Valid topic configuration found in {}ms, but internal topics are missing for "
        "topology epoch {}: {}",
        "[GroupId {}][MemberId {}] Valid topic configuration found in {}ms, topology epoch {} is now initialized.",
    ),
    "4.4": (
        "Failed to apply topology-description post-processing on the streams group heartbeat response for group "
        "{}; returning the response unmodified.",
        "Failed to finalize StoredDescriptionTopologyEpoch for groups {} on partition {}; the next cleanup cycle "
        "will retry.",
        "Failed to write the UNCERTAIN barrier for groups {} on partition {}; skipping their plugin delete — the "
        "next cleanup cycle will retry.",
        "Topology description plugin getTopology failed for group {}.",
        "Topology-description cleanup cycle failed to complete cleanly.",
        "Topology-description cleanup cycle is already started.",
        "Topology-description cleanup cycle skipped: previous cycle is still in flight.",
        "Topology-description cleanup read failed for one partition.",
        "Tried to flush an empty batch for {}.",
        "Unexpected error running topology-description cleanup cycle.",
        "Unexpected error scanning streams group {} for topology cleanup; skipping.",
        "[GroupId {}] Requested topology description push at topology epoch {}.",
        "[GroupId {}] The configured task assignor '{}' is not available; falling back to the default assignor '{}'.",
        "[GroupId {}] The refined assignment does not hand out as many active tasks as the target assignment. "
        "Reconciling towards the target assignment instead, so tasks that have to move do so without warming up "
        "first. Target assignment: {}, refined assignment: {}.",
    ),
}

OF_NO_GROUP = (
    "Static member {} with unknown member id rejoins, assigning new member id {}, while old member {} will be removed.",
    "given member.id {} is identified as a known static member {},but not matching the expected member.id {}",
)
"""Which seat was taken, and who was refused, as 2.3 and 2.4 say it: something follows of these, and for which group
they do not tell, nor does a line about a load name members there."""

_OF_NO_GROUP = tuple(tuple(template.split("{}")) for template in OF_NO_GROUP)
_PARTS = tuple(tuple(template.split("{}")) for templates in SILENT.values() for template in templates)
_ANY_HEAD = tuple(parts for parts in _PARTS if not parts[0])
_BY_HEAD: dict[str, list[tuple[str, ...]]] = {}
for _parts in _PARTS:
    if _parts[0]:
        _BY_HEAD.setdefault(_parts[0][:4], []).append(_parts)


def is_silent(message: str) -> bool:
    """Whether a message is one of these. Each is looked for in one pass, however long the message is."""
    message = message.rstrip()
    return any(_fits(parts, message) for parts in (*_BY_HEAD.get(message[:4], ()), *_ANY_HEAD))


def names_no_group(message: str) -> bool:
    """Whether a message is one of `OF_NO_GROUP`."""
    return any(_fits(parts, message.rstrip()) for parts in _OF_NO_GROUP)


def _fits(parts: tuple[str, ...], message: str) -> bool:
    if len(parts) == 1:
        return message == parts[0]
    first, *between, last = parts
    if not (message.startswith(first) and message.endswith(last)):
        return False
    place, end = len(first), len(message) - len(last)
    for part in between:
        place = message.find(part, place, end)
        if place < 0:
            return False
        place += len(part)
    return place <= end
