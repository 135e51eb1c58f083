"""From what a broker writes to events: dialects, tailing, the offsets topic, and the topic `kardia.events`.

    tail       follows logs while they grow          archives  reads logs of the past, wrapped or not
    offsets    reads `__consumer_offsets`            admin     asks the cluster, read only
    dialects   what a line says                      layouts   how a line is laid out
    clients, security   Kafka clients: their settings and secrets
    wire       events in the topic `kardia.events`   doctor    says what is missing before anything is collected

`assembly` puts a collector together and `collector` is its loop; `blocks` cuts bytes into lines for both readers, live
and archived. Nothing here judges a group or a member; an event says what was in the log and where it stood.
"""
