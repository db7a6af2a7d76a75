// The session: a link's token and a key, which this origin keeps, are exchanged for a cookie, which no script can read.

const KEY = `deskhand-key ${new URL(".", location.href).pathname}`;

/**
 * `alone`: the number of the only desktop; null where pages show a grid.
 *
 * @typedef {{name: string, scopes: string[], alone: number | null, seconds: number}} Session
 */

// Browsers that block what other sites store keep nothing for a frame: a page there has its key for as long as it lasts.
let held = "";

/**
 * A storage of this origin; null where the page may have none.
 * @param {"localStorage" | "sessionStorage"} name
 */
function storage(name) {
  try {
    return window[name];
  } catch {
    return null;
  }
}

/** The page's key; empty without one. */
export function key() {
  return storage("localStorage")?.getItem(KEY) || held;
}

/**
 * Begin: with the token of the address, or with the session that there is.
 * @returns {Promise<Session | string>} the session, or why there is none
 */
export async function begin() {
  const token = location.hash.startsWith("#/") ? "" : location.hash.slice(1);
  if (token) {
    // Without an answer the page can be loaded again, also if the token was used: with the same key it works again.
    const made = storage("sessionStorage")?.getItem(KEY) ?? (held || random());
    storage("sessionStorage")?.setItem(KEY, made);
    held = made;
    const answer = await fetch("session", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token, key: made }),
    });
    const content = await answer.json();
    // Neither the history nor a copied address has it any more.
    history.replaceState(null, "", location.pathname + location.search);
    storage("sessionStorage")?.removeItem(KEY);
    if (answer.ok) {
      storage("localStorage")?.setItem(KEY, made);
      return content;
    }
    held = "";
    // Who loads a link twice has a session from the first time.
    const known = await find();
    return typeof known === "string" ? content.detail : known;
  }
  return find();
}

/** A secret of 256 bits, in hexadecimal digits. */
function random() {
  return Array.from(crypto.getRandomValues(new Uint8Array(32)), (each) => each.toString(16).padStart(2, "0")).join("");
}

/** @returns {Promise<Session | string>} */
export async function find() {
  const answer = await fetch("session", { headers: { "X-Deskhand-Key": key() } });
  const content = await answer.json();
  return answer.ok ? content : content.detail;
}

/**
 * A socket of this server.
 * @param {string} path
 */
export function open(path) {
  const address = new URL(path, location.href.split("#")[0]);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(address, ["deskhand.watch.1", `key.${key()}`]);
  socket.binaryType = "arraybuffer";
  return socket;
}
