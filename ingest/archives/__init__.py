"""Archived logs in the forms in which people have them, made into plain logs of one broker each for `ingest.planning`.

    paths -> files (`found`: folders and patterns) -> what each is, by its content (`kinds`)
          -> plain logs: as they are; wrapped ones: unwrapped into a scratch folder (`unwrapping`, by `envelopes`)

Streaming throughout: one line is held per broker that writes, and one chunk where an export has to be put in order
(`ordering`). What a wrapper damaged is refused line by line (`refusals`). Nothing here reads what a line says.
"""
