"""How events travel in the topic `kardia.events`: events of a lane in, records of the topic out, and back.

`batches` is the format of a record, `folded_batch` that of one whose quiet requests are in columns; `outgoing` is
what a collector sends to each lane, `producer` the topic on a real Kafka, `topic_id` tells a topic that was made again.
"""
