// Files and pictures on their way to the desktop: one at a time, each in pieces, with their progress.

import { button, get, toast } from "./dom.js";

const LARGEST = 32 << 20;
const MOST_FILES = 100;
const PIECE = 1 << 17;
// So much may be on its way and not be confirmed yet: what a person types waits behind it.
const AHEAD = 4 * PIECE;

/** @typedef {{kind: "file" | "picture", name: string, data: Blob}} Item */
/** @typedef {{id: number, received: number, over: boolean, where: string, error: string}} News */

export class Transfers {
  /**
   * @param {import("./messages.js").Send} send
   * @param {(piece: ArrayBuffer) => void} sendPiece
   */
  constructor(send, sendPiece) {
    this.send = send;
    this.sendPiece = sendPiece;
    /** @type {Item[]} */
    this.waiting = [];
    /** @type {(Item & {id: number, accepted: boolean, sent: number, received: number, reading: boolean}) | undefined} */
    this.current = undefined;
    this.ids = 0;
    this.all = 0;
    get("transfer").append(button("Cancel", "", () => this.cancel()));
  }

  /**
   * Send these after all others.
   * @param {Item[]} items
   */
  add(items) {
    for (const item of items) {
      if (item.data.size > LARGEST) {
        toast(`${item.name} is not sent: it is larger than ${size(LARGEST)}.`);
      } else if (this.waiting.length >= MOST_FILES) {
        toast(`At most ${MOST_FILES} files are sent at a time: the rest was left out.`);
        break;
      } else {
        this.waiting.push(item);
        this.all += 1;
      }
    }
    if (!this.current) this.next();
  }

  next() {
    const item = this.waiting.shift();
    if (!item) this.all = 0;
    this.current = item && { ...item, id: (this.ids += 1), accepted: false, sent: 0, received: 0, reading: false };
    if (this.current) {
      const { id, kind, name, data } = this.current;
      this.send({ type: "upload", id, kind, name: name.slice(0, 1000), size: data.size });
    }
    this.show();
  }

  /**
   * What the desktop says of the current one.
   * @param {News} news
   */
  news(news) {
    const current = this.current;
    if (!current || news.id !== current.id) return;
    current.accepted = true;
    current.received = news.received;
    if (!news.over) {
      this.show();
      this.pump();
      return;
    }
    if (news.error) toast(`${current.name}: ${news.error}`);
    else if (current.kind === "file") toast(`${current.name} is on the desktop: ${news.where}`, "note");
    this.next();
  }

  /** Send what may be on its way. */
  async pump() {
    const current = this.current;
    if (!current || current.reading) return;
    current.reading = true;
    try {
      while (current.sent < current.data.size && current.sent - current.received < AHEAD) {
        const piece = await current.data.slice(current.sent, current.sent + PIECE).arrayBuffer();
        if (this.current !== current) return;
        this.sendPiece(piece);
        current.sent += piece.byteLength;
      }
    } catch {
      if (this.current !== current) return;
      toast(`${current.name} cannot be read: it is a folder, or has changed.`);
      this.send({ type: "cancel" });
      this.next();
    } finally {
      current.reading = false;
    }
  }

  /** Send neither those that wait nor the current one; what is there whole already is written. */
  cancel() {
    this.waiting = [];
    if (this.current && this.current.sent < this.current.data.size) {
      this.send({ type: "cancel" });
      this.stop();
    }
  }

  /** Control has ended, and nothing can be sent any more. */
  lost() {
    if (this.current) {
      const { name, sent, data } = this.current;
      const more = this.waiting.length;
      if (sent < data.size) toast(`${name}${more ? ` and ${more} more are` : " is"} not sent: you do not have control any more.`);
      else toast(`${name} may not be on the desktop${more ? `, and ${more} more are not sent` : ""}: you do not have control any more.`);
    }
    this.stop();
  }

  /** Send nothing. */
  stop() {
    this.waiting = [];
    this.current = undefined;
    this.all = 0;
    this.show();
  }

  show() {
    const current = this.current;
    get("transfer").hidden = !current;
    if (!current) return;
    const number = this.all > 1 ? ` (${this.all - this.waiting.length} of ${this.all})` : "";
    const done = current.received >= current.data.size && current.accepted;
    const amount = done ? "waits to be written" : `${size(current.received)} of ${size(current.data.size)}`;
    get("transfer-text").textContent = `${current.name}${number}: ${amount}`;
    const progress = /** @type {HTMLProgressElement} */ (get("transfer-progress"));
    progress.max = Math.max(1, current.data.size);
    progress.value = current.received;
  }
}

/** @param {number} bytes */
function size(bytes) {
  return bytes < 1 << 20 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / (1 << 20)).toFixed(1).replace(".0", "")} MiB`;
}
