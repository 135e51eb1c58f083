// The page: which view, a question after each batch, and what is said when there is no answer. No data lives here.

import { at as standingAt, read, to } from "./address.js";
import { ask, Refusal, setToken } from "./ask.js";
import { learn } from "./countdown.js";
import { id, make, say } from "./dom.js";
import { fleet } from "./fleet.js";
import { follow as followNews } from "./follow.js";
import { group } from "./group.js";
import { member } from "./member.js";
import { isArchive } from "./status.js";
import { clockTime, duration, zone } from "./words.js";

const EVERY_MS = 1000;
const EVERY_FOLLOWING_MS = 5000; // news come by themselves; this shows that a feed has become old
const PAUSE_MS = 200;
const VIEWS = [
  [/^\/clusters\/[^/?]+\/groups\/[^/?]+(\?.*)?$/, group],
  [/^\/clusters\/[^/?]+\/groups\/[^/?]+\/members\/[^/?]+(\?.*)?$/, member],
];
const main = document.getElementById("main");
const crumbs = document.getElementById("crumbs");
const feed = document.getElementById("feed");

let view = null;
let turn = 0;
let wake = () => {};
let news = false;
const following = followNews(() => {
  news = true;
  wake();
});
document.addEventListener("visibilitychange", () => wake());

function route() {
  const { path, ...times } = read(location.hash);
  const [, made] = VIEWS.find(([pattern]) => pattern.test(path)) ?? [null, fleet];
  view = made(`/api/v1${path}`, times);
  const mine = view;
  view.onStand = (atMs) => {
    // Replaced, not added: the way back leads to the page before, not through every place where the slider stood.
    if (view === mine) history.replaceState(null, "", standingAt(location.hash, atMs));
  };
  view.onNeed = () => {
    news = true;
    wake();
  };
  const loading = make("p", "loading", view.loading);
  loading.setAttribute("role", "status");
  main.replaceChildren(loading, ...view.root);
  main.dataset.waiting = ""; // an empty list says nothing before there is an answer
  main.setAttribute("aria-busy", "true");
  crumbs.replaceChildren();
  scrollTo(0, 0);
  turn += 1;
  follow(turn);
}

async function follow(mine) {
  const current = view;
  const gone = new AbortController();
  while (mine === turn) {
    const beganMs = performance.now();
    news = false;
    if (!document.hidden) {
      try {
        const answer = await current.questions((path) => ask(path, AbortSignal.any([gone.signal, AbortSignal.timeout(15_000)])));
        if (mine !== turn) return;
        learn(answer.freshness);
        notice(null);
        current.update(answer);
        delete main.dataset.waiting;
        main.removeAttribute("aria-busy");
        sayFeed(answer.freshness, answer.then?.atMs ?? null);
        sayCrumbs(answer);
        document.body.dataset.following = String(following.isFollowing());
        document.body.dataset.batch = String(answer.freshness.batch_id);
      } catch (error) {
        if (mine !== turn) return;
        refused(error);
      }
    }
    await new Promise((resume) => setTimeout(resume, PAUSE_MS));
    if (mine !== turn) return;
    if (news) continue;
    const everyMs = following.isFollowing() ? EVERY_FOLLOWING_MS : EVERY_MS;
    await new Promise((resume) => {
      wake = resume;
      setTimeout(resume, Math.max(0, everyMs - (performance.now() - beganMs)));
    });
  }
}

function sayCrumbs(answer) {
  if (crumbs.firstChild || !answer.group) return;
  const all = make("a", "", id(answer.group.cluster_id));
  all.href = "#/";
  crumbs.append(all, " / ", id(answer.group.group_id, "", 60));
  if (answer.called) {
    const own = make("a", "", crumbs.lastChild);
    own.href = to(answer.group.href);
    crumbs.append(own, " / ", id(answer.called, "", 60));
  }
  document.title = `${crumbs.lastChild.textContent} · Kardia`;
}

function sayFeed(freshness, atMs) {
  feed.classList.toggle("stale", freshness.stale && atMs === null);
  if (atMs !== null) say(feed, `shown as of ${clockTime(atMs)}`);
  else if (freshness.age_ms === null) say(feed, "nothing read yet");
  else if (isArchive(freshness)) say(feed, `the logs end ${duration(freshness.age_ms)} ago`);
  else if (freshness.stale) say(feed, `feed is ${duration(freshness.age_ms)} old: countdowns stand still`);
  else say(feed, `complete as of ${duration(freshness.age_ms)} ago`);
}

function notice(...children) {
  const shown = main.querySelector(":scope > .notice");
  if (children[0] === null) {
    shown?.remove();
    return;
  }
  if (shown?.dataset.code === children[0]) return;
  shown?.remove();
  const element = make("div", "notice", ...children.slice(1));
  element.dataset.code = children[0];
  element.setAttribute("role", "alert");
  main.prepend(element);
}

function refused(error) {
  feed.classList.add("stale");
  if (error instanceof Refusal && error.status === 401) {
    say(feed, "a token is needed");
    notice("401", "This server wants a token. It stays in this tab.", tokenForm());
  } else if (error instanceof Refusal) {
    say(feed, error.status === 503 ? "waiting for the tables" : "no answer");
    notice(error.code, error.message);
  } else {
    say(feed, "no answer");
    notice("network", "The server does not answer. It is asked again every second.");
    learn({ answered_at_ms: Date.now(), stale: true });
  }
}

function tokenForm() {
  const input = make("input");
  input.type = "password";
  input.autocomplete = "off";
  input.setAttribute("aria-label", "Bearer token");
  const form = make("form", "ask", input, make("button", "quiet", "Use it"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    setToken(input.value.trim());
    route();
  });
  return form;
}

const theme = document.getElementById("theme");
document.documentElement.dataset.theme = localStorage.getItem("kardia-theme") ?? "";
theme.addEventListener("click", () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark" || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  const next = dark ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("kardia-theme", next);
});

say(document.getElementById("zone"), `Times are yours, ${zone(new Date())}; reports and the command line speak UTC.`);
addEventListener("hashchange", route);
route();
