// The page: its session, and the socket of what it shows.

import { get, toast } from "./dom.js";
import { Grid } from "./grid.js";
import { Live } from "./live.js";
import { begin, find, open } from "./session.js";

/** @typedef {import("./messages.js").Turn} Turn */

const GRANT_ENDED = 4401;
const DESKTOP_ENDED = 4404;
const LONGEST_WAIT = 5000;
const MOST_UNANSWERED = 3;

/** @type {WebSocket | undefined} */
let socket;
let wait = 250;
let shown = "";
let unanswered = 0;
let timer = 0;

const live = new Live(
  (message) => {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message, wellFormed));
  },
  (piece) => {
    if (socket?.readyState === WebSocket.OPEN) socket.send(piece);
  },
);
const grid = new Grid();

/**
 * Half a character, of a text that was cut, cannot be sent.
 * @param {string} _
 * @param {unknown} value
 */
function wellFormed(_, value) {
  // Older browsers have no such function.
  return typeof value === "string" && "toWellFormed" in String.prototype ? value.toWellFormed() : value;
}

/**
 * Show one part of the page.
 * @param {"gate" | "grid" | "live"} part
 */
function show(part) {
  for (const each of ["gate", "grid", "live"]) get(each).hidden = each !== part;
}

/** @param {string} why */
function refuse(why) {
  get("gate-text").textContent = why;
  show("gate");
}

/**
 * Connect to what the address names.
 * @param {import("./session.js").Session} session
 */
function connect(session) {
  clearTimeout(timer);
  const number = session.alone ?? /^#\/(\d+)$/.exec(location.hash)?.[1];
  const path = number === undefined ? "grid" : `live/${number}`;
  const former = socket;
  socket = undefined;
  former?.close();
  if (path !== shown) live.reset();
  shown = path;
  show(path === "grid" ? "grid" : "live");
  get("back").hidden = session.alone !== null;
  if (path === "grid") {
    document.title = "Desktops · deskhand";
    grid.stale();
  }
  const mine = open(path);
  socket = mine;
  /** @type {Turn | undefined} */
  let turn;
  let work = Promise.resolve();
  mine.addEventListener("message", ({ data }) => {
    // In order, and each acknowledged when it is drawn.
    work = work.then(async () => {
      if (socket !== mine) return;
      [wait, unanswered] = [250, 0];
      if (typeof data === "string") {
        turn = /** @type {Turn} */ (JSON.parse(data));
        take(turn);
        if (turn.picture) return;
      } else if (path === "grid") await grid.draw(data);
      else await live.draw(data);
      if (turn && mine.readyState === WebSocket.OPEN) mine.send(JSON.stringify({ type: "ack", sequence: turn.sequence }));
      turn = undefined;
    });
  });
  mine.addEventListener("close", (event) => {
    if (socket !== mine) return;
    live.lost();
    again(session, event);
  });
}

/** @param {Turn} turn */
function take(turn) {
  if (turn.desktops) grid.put(turn.desktops);
  if (turn.state) live.show(turn.state);
  if (turn.operations) live.operations.put(turn.operations);
  if (turn.pointed) live.pointed.show(turn.pointed);
  if (turn.answers) live.answers(turn.answers);
  if (turn.upload) live.transfers.news(turn.upload);
  if (turn.copied) live.copiedPicture(turn.copied);
}

/**
 * The connection has ended: try again, unless the session has ended.
 * @param {import("./session.js").Session} session
 * @param {CloseEvent} event
 */
function again(session, event) {
  const pill = get(shown === "grid" ? "grid-state" : "state");
  pill.textContent = unanswered < MOST_UNANSWERED ? "Reconnecting…" : "The server does not answer any more";
  pill.className = "pill lost";
  if (event.code === GRANT_ENDED) {
    refuse("Your access has ended. Ask for a new link.");
    return;
  }
  if (event.reason) toast(event.reason);
  if (event.code === DESKTOP_ENDED && session.alone === null) {
    location.hash = "#/";
    return;
  }
  timer = window.setTimeout(async () => {
    wait = Math.min(LONGEST_WAIT, wait * 2);
    try {
      const found = await find();
      if (typeof found === "string") refuse(found);
      else {
        // What was known may be of another server.
        live.reset();
        connect(found);
      }
    } catch {
      unanswered += 1;
      again(session, new CloseEvent("close"));
    }
  }, wait);
}

/** Begin, and try again where the network has just changed, say. */
async function began() {
  for (let left = MOST_UNANSWERED; ; ) {
    try {
      return await begin();
    } catch (error) {
      left -= 1;
      if (left === 0) throw error;
      await new Promise((go) => setTimeout(go, wait));
    }
  }
}

async function main() {
  addEventListener("hashchange", () => {
    // A link that is opened in this tab.
    if (location.hash.length > 1 && !location.hash.startsWith("#/")) location.reload();
  });
  try {
    const session = await began();
    if (typeof session === "string") refuse(`${session.charAt(0).toUpperCase()}${session.slice(1)}.`);
    else {
      connect(session);
      addEventListener("hashchange", () => connect(session));
    }
  } catch {
    refuse("The server does not answer. Load the page again.");
  }
}

main();
