// News of each batch by server-sent events. Read with fetch, because EventSource cannot carry a token.
// Where following is refused or cut off, nobody waits: the page asks every second, and following is tried again.

import { headers } from "./ask.js";
import { createParser } from "./vendor/eventsource-parser-3.1.1.js";

const AGAIN_MS = 5_000;
const SILENT_MS = 30_000; // the server sends a comment every 10 s

/** Calls `onNews` after each batch; `isFollowing` says whether news come by themselves. */
export function follow(onNews) {
  let following = false;
  let heardMs = 0;
  const listen = async () => {
    const gone = new AbortController();
    const watch = setInterval(() => performance.now() - heardMs > SILENT_MS && gone.abort(), 1_000);
    try {
      heardMs = performance.now();
      const reply = await fetch("/api/v1/changes", { headers: headers(), signal: gone.signal, cache: "no-store", credentials: "omit" });
      if (!reply.ok) return;
      const parser = createParser({
        maxBufferSize: 65_536,
        onEvent: (event) => {
          following = true;
          if (event.event === "batch") onNews();
        },
      });
      const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        heardMs = performance.now();
        parser.feed(part.value);
      }
    } catch {
      // The next try says more than the reason why this one ended.
    } finally {
      following = false;
      clearInterval(watch);
      gone.abort();
      setTimeout(listen, AGAIN_MS);
    }
  };
  listen();
  return { isFollowing: () => following };
}
