"""Following a broker's logs while they grow: bytes of files in, complete lines with their positions out.

`tailer` follows one name through rotations, `incarnation` one file from its creation to its end, `identity` tells which
file it is; `wrapped` reads what a container runtime wrapped, `kubelet` where it puts it; `followable` refuses what
cannot be followed. `broker_log` is one log with its dialect and its ticks; `positions` are kept on disk, `notices`
tells that there is something new. Nothing here knows what a line means, and nothing speaks to Kafka.
"""
