// The address of the page: `#/clusters/demo/groups/orders?at=2026-11-20T21:52:03.754Z`. Behind the `#` stands the API path
// without its prefix, and beside its parameters what is only the page's: `at`, the instant at which the slider stands, and
// `from` and `to`, the stretch of time whose incident report is open. Made to be put into a ticket.

const OWN = ["at", "from", "to"];
const WITH_ZONE = /(?:Z|[+-]\d\d:\d\d)$/;

/** What an address is about. `path` is that of the API with its own parameters, word for word; instants are null or ms. */
export function read(hash) {
  const [place, query = ""] = parts(hash);
  const rest = query.split("&").filter((one) => one !== "" && !isOwn(one));
  const given = new URLSearchParams(query);
  const [atMs, fromMs, toMs] = OWN.map((name) => instant(given.get(name)));
  return { path: place + (rest.length ? `?${rest.join("&")}` : ""), atMs, fromMs, toMs };
}

/** The same address at another instant; null: now. A report that is open is about its own time and goes. */
export function at(hash, atMs) {
  const { path } = read(hash);
  if (atMs === null) return `#${path}`;
  return `#${path}${path.includes("?") ? "&" : "?"}at=${new Date(atMs).toISOString()}`;
}

/** The address of the page about an object of the API, at an instant; null: now. */
export function to(href, atMs = null) {
  return at(`#${href.replace("/api/v1", "")}`, atMs);
}

function parts(hash) {
  const text = hash.replace(/^#/, "");
  const cut = text.indexOf("?");
  return cut < 0 ? [text] : [text.slice(0, cut), text.slice(cut + 1)];
}

function isOwn(parameter) {
  return OWN.includes(parameter.split("=")[0]);
}

/** Epoch milliseconds, or RFC 3339 with a zone, as the API takes them; what is neither is as if it were not there. */
function instant(text) {
  if (text === null) return null;
  const ms = /^\d{1,15}$/.test(text) ? Number(text) : WITH_ZONE.test(text) ? Date.parse(text) : NaN;
  return Number.isFinite(ms) ? ms : null;
}
