"""Lag: how far the committed offsets of groups are behind the ends of their partitions, in records and in time.

In come commits and, now and then, the ends of partitions (events `OFFSET_RECORD` and `ENDS`); out come rows of the
table `lag`, written by what changed. Reads no clock; does not know members or rebalances: why a group falls behind is
said where rows are read (`kardia.story.lagging`), because that changes without an offset changing. Reading order:
`ends` (one partition's end over time), `commits` (one group's commits to one partition, and Burrow's rules about them),
`book` (all of one lane).
"""
