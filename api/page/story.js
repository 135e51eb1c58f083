// A list of what happened: when, and up to three lines about it.

import { serverNow } from "./countdown.js";
import { make, reconcile, say } from "./dom.js";
import { clockTime, day } from "./words.js";

/** Keep one item per row; the element behind the list is shown where there is none. */
export function story(list, rows, atOf, keyOf, textOf) {
  reconcile(
    list,
    rows,
    keyOf,
    () => make("li", "", make("time"), make("div", "", make("p"), make("p"), make("p"))),
    (item, row) => {
      const at = atOf(row);
      const [time, text] = item.children;
      if (!time.firstChild) {
        time.dateTime = new Date(at).toISOString();
        time.append(clockTime(at), make("small", "", day(at, serverNow())));
      }
      textOf(row).forEach((sentence, index) => {
        say(text.children[index], sentence);
        text.children[index].hidden = sentence === "";
      });
    },
  );
  list.nextElementSibling.hidden = rows.length > 0;
}

/** The same of sentences as the API words them, which `kardia why` and `kardia explain` print. */
export function tell(list, sentences) {
  const sure = (one) => (one.certainty === "exact" || one.text.toLowerCase().includes(one.certainty) ? "" : one.certainty);
  story(list, sentences, (one) => one.at_ms, (one) => `${one.at_ms}/${one.kind}/${one.text}`, (one) => [one.text, sure(one), ""]);
}
