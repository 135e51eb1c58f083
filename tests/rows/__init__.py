"""Golden rows: what the observer says of everything that is kept, held against what it said when that was agreed.

`cases` makes the rows of a case, `compared` says two lists of rows apart in sentences, `digests.json` has a digest for
each case. `python -m tests.rows` (`make rows`) makes them all and tells what is different; with `--accept` the rows of
now are what is agreed on from now on. A change that is meant not to change a row is proven with it.
"""
