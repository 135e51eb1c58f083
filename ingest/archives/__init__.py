"""Archived logs in the forms in which people have them: made into plain logs of one broker each, cut into ranges,
parsed.

    paths -> files (`found`: folders and patterns) -> what each is, by its content (`kinds`)
          -> plain logs: as they are; wrapped ones: unwrapped into a scratch folder (`unwrapping`, by `envelopes`)
          -> ranges of bytes in the order to be read (`planning`; `missing_files` tells where a file is gone)
          -> events by lane, in any process (`ranges`)

Streaming throughout: one line is held per broker that writes, and one chunk where an export has to be put in order
(`ordering`). What a wrapper damaged is refused line by line (`refusals`). What a line says is read by the dialects.
"""
