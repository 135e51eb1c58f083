"""Templates of the same lines as `bench.fleet` has, as a broker 2.7 writes them: text, nothing quoted."""

from __future__ import annotations

_HEAD = "[{stamp}] DEBUG Completed request:RequestHeader(apiKey={name}, apiVersion={version}, clientId={client}, "
_HEAD += "correlationId={number}) -- "
_END = (
    " from connection 127.0.0.1:9092-{host}:{port}-{proc};totalTime:{total},requestQueueTime:0.151,localTime:{local},"
    "remoteTime:{remote},throttleTime:0,responseQueueTime:0.136,sendTime:0.075,securityProtocol:PLAINTEXT,"
    "principal:User:ANONYMOUS,listener:PLAINTEXT,clientInformation:ClientInformation(softwareName=apache-kafka-java, "
    "softwareVersion=2.7.2) (kafka.request.logger)\n"
)
_TAGS = ",_tagged_fields={{}}"
_SHUT = _TAGS + "}}"
_SHUT_THREE = (_SHUT + "]") * 2 + _SHUT
"""Of a field in a list in a list: a partition of a topic of the message."""
_BYTES = "java.nio.HeapByteBuffer[pos=0 lim=28 cap=28]"
HEARTBEAT = (
    _HEAD
    + "{{group_id={group},generation_id=1,member_id={member},group_instance_id=null"
    + _SHUT
    + ",response:{{throttle_time_ms=0,error_code=0"
    + _SHUT
    + _END
)
FETCH = (
    _HEAD
    + "{{replica_id=-1,max_wait_ms=500,min_bytes=1,max_bytes=52428800,isolation_level=0,session_id=7,"
    + "session_epoch={number},topics=[{{topic=orders,partitions=[{{partition=0,current_leader_epoch=0,fetch_offset=12,"
    + "last_fetched_epoch=-1,log_start_offset=-1,partition_max_bytes=1048576"
    + _SHUT
    + "]"
    + _SHUT
    + "],forgotten_topics_data=[],rack_id="
    + _SHUT
    + ",response:{{throttle_time_ms=0,error_code=0,session_id=7,responses=[{{topic=orders,partition_responses=["
    + "{{partition=0,error_code=0,high_watermark=12,last_stable_offset=12,log_start_offset=0,aborted_transactions=[],"
    + "preferred_read_replica=-1,record_set=FileRecords(size=110, file=DATADIR/orders-0/00000000000000000000.log, "
    + "start=0, end=110)"
    + _SHUT_THREE
    + _END
)
COMMIT = (
    _HEAD
    + "{{group_id={group},generation_id=1,member_id={member},group_instance_id=null,topics=[{{name=orders,partitions=["
    + "{{partition_index=0,committed_offset={number},committed_leader_epoch=0,committed_metadata="
    + _SHUT_THREE
    + ",response:{{throttle_time_ms=0,topics=[{{name=orders,partitions=[{{partition_index=0,error_code=0"
    + _SHUT_THREE
    + _END
)
JOIN = (
    _HEAD
    + "{{group_id={group},session_timeout_ms=45000,rebalance_timeout_ms=300000,member_id={member},"
    + "group_instance_id=null,protocol_type=consumer,protocols=[{{name=range,metadata="
    + _BYTES
    + _SHUT
    + "]"
    + _SHUT
    + ",response:{{throttle_time_ms=0,error_code=0,generation_id=1,protocol_type=consumer,protocol_name=range,"
    + "leader={leader},member_id={member},members=[{listed}]"
    + _SHUT
    + _END
)
SYNC = (
    _HEAD
    + "{{group_id={group},generation_id=1,member_id={member},group_instance_id=null,protocol_type=consumer,"
    + "protocol_name=range,assignments=[{assigned}]"
    + _SHUT
    + ",response:{{throttle_time_ms=0,error_code=0,protocol_type=consumer,protocol_name=range,assignment="
    + _BYTES
    + _SHUT
    + _END
)
LISTED = "{{member_id={name},group_instance_id=null,metadata=" + _BYTES + _SHUT
ASSIGNED = "{{member_id={name},assignment=" + _BYTES + _SHUT
EVERY_MS = (
    (HEARTBEAT, 12, 4, "HEARTBEAT", 3_000.0),
    (FETCH, 1, 12, "FETCH", 500.0),
    (COMMIT, 8, 8, "OFFSET_COMMIT", 5_000.0),
)
JOIN_VERSION = 7
