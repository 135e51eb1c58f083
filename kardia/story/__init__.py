"""The story of a group in sentences: rows of the tables in, sentences out. Reads no file, no clock, no socket.

`tell.explain` and `tell.why` take `facts.Material` (standing rows of one group as mappings) and give `facts.Story`.
Reading order: `facts` (what comes in and goes out), `tell` (the order of the sentences), `lives` (who came, who went,
and why), `rebalances` (what began, whom it waited for, what it cost), `links` (what followed from what), `foretold`
(what had been predicted), `rolled` (a roll-out), `who_broke` (who broke a membership), `migrations` (a group that
changes its protocol), `report` (several groups),
`disagreements` (where server.log says otherwise), `present` (what was so at an instant), `evidence` (what a sentence
rests on), `words` (how names, instants and durations are written; nothing else writes a stranger's text).
"""

from kardia.story.facts import Material, Sentence, Story
from kardia.story.tell import NoSuchMember, explain, why

__all__ = ["Material", "NoSuchMember", "Sentence", "Story", "explain", "why"]
