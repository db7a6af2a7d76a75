// All desktops as thumbnails. They come and go: the tile of one that has ended stays until another takes its place.

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
 *
 * @typedef {object} Tile
 * @property {number | null} id of its desktop; null when that has ended
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
    /** @type {Tile[]} The tiles of the desktops in the order in which the server lists these. */
    this.listed = [];
    this.filter = /** @type {HTMLInputElement} */ (get("grid-filter"));
    this.filter.addEventListener("input", () => this.sift());
  }

  /** @param {Summary[]} summaries */
  put(summaries) {
    const ids = new Set(summaries.map((summary) => summary.id));
    for (const tile of this.tiles) if (tile.id !== null && !ids.has(tile.id)) end(tile);
    this.listed = summaries.map((summary) => {
      const tile = this.tiles.find(({ id }) => id === summary.id) ?? this.place(summary.id);
      const [text, kind] = stateOf(summary);
      tile.name.textContent = summary.name;
      tile.pill.textContent = text;
      tile.pill.className = `pill ${kind}`;
      tile.latest.textContent = summary.latest ? summary.latest.title : "No operation yet";
      tile.link.setAttribute("aria-label", `${summary.name}: ${text}`);
      tile.item.dataset.name = summary.name.toLowerCase();
      if (summary.hidden) clear(tile);
      return tile;
    });
    const waiting = summaries.filter((summary) => summary.asks).length;
    const count = `${summaries.length} ${summaries.length === 1 ? "desktop" : "desktops"}`;
    get("grid-state").textContent = waiting ? `${waiting} of ${summaries.length} wait for you` : count;
    get("grid-state").className = waiting ? "pill asks" : "pill";
    this.sift();
  }

  /**
   * The tile of a desktop that has come: that of one that has ended, or another.
   * @param {number} id
   */
  place(id) {
    const tile = this.tiles.find((each) => each.id === null) ?? this.add();
    tile.id = id;
    tile.link.href = `#/${id}`;
    clear(tile);
    return tile;
  }

  /** @returns {Tile} */
  add() {
    const canvas = /** @type {HTMLCanvasElement} */ (make("canvas", "thumbnail"));
    canvas.width = 320;
    canvas.height = 200;
    const [name, pill, latest] = [make("h2"), make("span", "pill"), make("p", "latest")];
    const link = /** @type {HTMLAnchorElement} */ (make("a", "tile", canvas, make("div", "tile-head", name, pill), latest));
    const item = make("li", "", link);
    this.list.append(item);
    const tile = { id: null, item, canvas, name, pill, latest, link };
    this.tiles.push(tile);
    return tile;
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
      const canvas = this.listed[index]?.canvas;
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
function end(tile) {
  tile.id = null;
  tile.pill.textContent = "Ended";
  tile.pill.className = "pill";
  tile.link.removeAttribute("href");
  tile.link.setAttribute("aria-label", `${tile.name.textContent}: ended`);
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
  if (summary.loss) return ["No picture", "lost"];
  if (summary.stopped) return ["Stopped", "stopped"];
  if (summary.asks) return ["Waits for you", "asks"];
  if (summary.holder) return [`${summary.holder.by} has control`, "held"];
  if (summary.paused) return ["Paused", "paused"];
  return ["Live", "good"];
}
