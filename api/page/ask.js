// Questions to the API. The token, where one is needed, lives in this tab only.

const TOKEN = "kardia-token";

/** What the API refused, with its stable code. */
export class Refusal extends Error {
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

export function setToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

/** What every question carries. */
export function headers() {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

/** The text of an answer that is no JSON, or a Refusal. */
export async function askText(path) {
  const reply = await fetch(path, { headers: headers(), cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(15_000) });
  if (reply.ok) return reply.text();
  const body = await reply.json();
  throw new Refusal(reply.status, body.code ?? "unknown", body.detail ?? "The API gave no reason.");
}

/** JSON of an answer, or a Refusal. */
export async function ask(path, signal) {
  const reply = await fetch(path, { headers: headers(), signal, cache: "no-store", credentials: "omit" });
  const body = await reply.json();
  if (!reply.ok) throw new Refusal(reply.status, body.code ?? "unknown", body.detail ?? "The API gave no reason.");
  return body;
}
