// The incident report of a group: Markdown to paste into a ticket, about the time that the electrocardiogram shows.

import { askText } from "./ask.js";
import { make, say } from "./dom.js";

/** A button and the card that it opens. `about()` gives the report's path and the stretch of time; `show` opens another. */
export function report(about) {
  const open = button("Incident report");
  const copy = button("Copy");
  const close = button("Close");
  const said = make("span", "soft");
  said.setAttribute("role", "status");
  const text = make("pre");
  text.tabIndex = 0;
  text.setAttribute("aria-label", "Incident report as Markdown");
  const root = make("section", "card report", make("div", "head", make("h2", "", "Incident report"), make("div", "switch", said, copy, close)), text);
  root.hidden = true;
  const put = () => {
    root.hidden = true;
    open.focus();
  };
  const show = async (path, fromMs, toMs) => {
    root.hidden = false;
    say(said, "");
    say(text, "…");
    try {
      say(text, await askText(`${path}?from=${Math.floor(fromMs)}&to=${Math.ceil(toMs)}&format=markdown`));
      text.focus();
    } catch (error) {
      say(text, error.message);
    }
  };
  open.addEventListener("click", () => {
    const { path, fromMs, toMs } = about();
    show(path, fromMs, toMs);
  });
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      say(said, "copied");
    } catch {
      // Without TLS a browser gives no clipboard; what is selected can be copied by hand.
      getSelection().selectAllChildren(text);
      say(said, "selected: copy it with Ctrl-C");
    }
  });
  close.addEventListener("click", put);
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape") put();
  });
  return { open, root, show };
}

function button(label) {
  const element = make("button", "quiet", label);
  element.type = "button";
  return element;
}
