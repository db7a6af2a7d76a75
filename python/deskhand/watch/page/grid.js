// All desktops as thumbnails, in the places that the server gives them. One that has ended keeps its place until another takes it.

import { get, make } from "./dom.js";
import { decode } from "./picture.js";

/**
 * @typedef {object} Summary
 * @property {number} id
 * @property {string} name
 * @property {number[]} size
 * @property {string} loss
 * @property {boolean} stopped
 * @property {boolean} hidden
 * @property {{by: string, private: boolean} | null} holder
 * @property {{by: string} | null} paused
 * @property {number} asks
 * @property {{title: string, state: string} | null} latest
 * @property {string | null} ended how it ended; null while it is live
 *
 * @typedef {object} Tile
 * @property {number} id of its desktop
 * @property {HTMLElement} item
 * @property {HTMLCanvasElement} canvas
 * @property {HTMLElement} name
 * @property {HTMLElement} pill
 * @property {HTMLElement} latest
 * @property {HTMLAnchorElement} link
 */

export class Grid {
  constructor() {
    this.list = get("tiles");
    /** @type {Tile[]} */
    this.tiles = [];
    this.filter = /** @type {HTMLInputElement} */ (get("grid-filter"));
    this.filter.addEventListener("input", () => this.sift());
  }

  /** @param {Summary[]} summaries */
  put(summaries) {
    this.list.classList.remove("stale");
    while (this.tiles.length < summaries.length) this.add();
    // Another server may have fewer.
    for (const { item } of this.tiles.splice(summaries.length)) item.remove();
    summaries.forEach((summary, index) => {
      const tile = this.tiles[index];
      if (tile.id !== summary.id) clear(tile);
      tile.id = summary.id;
      if (summary.ended === null) tile.link.href = `#/${summary.id}`;
      else tile.link.removeAttribute("href");
      const [text, kind] = stateOf(summary);
      tile.name.textContent = tile.name.title = summary.name;
      tile.pill.textContent = text;
      tile.pill.className = `pill ${kind}`;
      tile.latest.textContent = summary.latest ? summary.latest.title : "No operation yet";
      tile.link.setAttribute("aria-label", `${summary.name}: ${text}`);
      tile.item.dataset.name = summary.name.toLowerCase();
      if (summary.hidden) clear(tile);
    });
    const live = summaries.filter((summary) => summary.ended === null);
    const waiting = live.filter((summary) => summary.asks).length;
    const count = `${live.length} ${live.length === 1 ? "desktop" : "desktops"}`;
    get("grid-state").textContent = waiting ? `${waiting} of ${live.length} wait for you` : count;
    get("grid-state").className = waiting ? "pill asks" : "pill";
    this.sift();
  }

  /** What is shown may be old: it is that of an earlier connection. */
  stale() {
    this.list.classList.add("stale");
    get("grid-state").textContent = "Connecting…";
    get("grid-state").className = "pill";
  }

  add() {
    const canvas = /** @type {HTMLCanvasElement} */ (make("canvas", "thumbnail"));
    canvas.width = 320;
    canvas.height = 200;
    const [name, pill, latest] = [make("h2"), make("span", "pill"), make("p", "latest")];
    const link = /** @type {HTMLAnchorElement} */ (make("a", "tile", canvas, make("div", "tile-head", name, pill), latest));
    const item = make("li", "", link);
    this.list.append(item);
    this.tiles.push({ id: -1, item, canvas, name, pill, latest, link });
  }

  sift() {
    const wanted = this.filter.value.toLowerCase();
    let shown = 0;
    for (const { item } of this.tiles) {
      item.hidden = !(item.dataset.name ?? "").includes(wanted);
      shown += Number(!item.hidden);
    }
    get("tiles-none").hidden = shown > 0;
    get("tiles-none").textContent = this.tiles.length ? "No desktop has this in its name." : "No desktop is shown yet.";
  }

  /**
   * Draw thumbnails; the number to acknowledge.
   * @param {ArrayBuffer} data
   */
  async draw(data) {
    const update = await decode(data);
    for (const { x: index, image } of update.pieces) {
      const canvas = this.tiles[index]?.canvas;
      if (canvas) {
        canvas.width = image.width;
        canvas.height = image.height;
        canvas.getContext("2d", { alpha: false })?.drawImage(image, 0, 0);
      }
      image.close();
    }
  }
}

/** @param {Tile} tile */
function clear({ canvas }) {
  canvas.getContext("2d", { alpha: false })?.fillRect(0, 0, canvas.width, canvas.height);
}

/**
 * @param {Summary} summary
 * @returns {[string, string]}
 */
function stateOf(summary) {
  if (summary.ended !== null) return [summary.ended || "Ended", ""];
  if (summary.loss) return ["No picture", "lost"];
  if (summary.stopped) return ["Stopped", "stopped"];
  if (summary.asks) return ["Waits for you", "asks"];
  if (summary.holder) return [`${summary.holder.by} has control`, "held"];
  if (summary.paused) return ["Paused", "paused"];
  return ["Live", "good"];
}
