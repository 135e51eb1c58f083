// Sentences of the API about the instant that is shown: why a group did what it did, and what happened to a member.

import { Refusal } from "./ask.js";
import { make } from "./dom.js";
import { tell } from "./story.js";

const AGAIN_MS = 5_000; // each answer reads files

/** A card of sentences; `pathOf` says what to ask about an instant (null: now), `of` takes the sentences of an answer. */
export function sentences(title, pathOf, of) {
  const list = make("ol", "story told");
  list.tabIndex = 0; // on a phone it scrolls
  list.setAttribute("aria-label", title);
  let last = { atMs: undefined, askedMs: 0, sentences: [] };
  return {
    root: make("section", "card", make("h2", "", title), list, make("p", "empty", "Nothing is known of it.")),
    questions: async (ask, atMs) => {
      if (last.atMs === atMs && performance.now() - last.askedMs < AGAIN_MS) return last.sentences;
      let found = [];
      try {
        found = of(await ask(pathOf(atMs)));
      } catch (error) {
        // An instant that is not read yet, or more than one answer may read: nothing else suffers.
        if (!(error instanceof Refusal)) throw error;
      }
      last = { atMs, askedMs: performance.now(), sentences: found };
      return found;
    },
    update: (found) => tell(list, found),
  };
}
