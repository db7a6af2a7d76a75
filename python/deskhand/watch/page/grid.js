// All desktops as thumbnails.

import { get, make } from "./dom.js";
import { decode } from "./picture.js";

/**
 * @typedef {object} Summary
 * @property {string} name
 * @property {number[]} size
 * @property {string} loss
 * @property {boolean} stopped
 * @property {boolean} hidden
 * @property {{by: string, private: boolean} | null} holder
 * @property {{by: string} | null} paused
 * @property {number} asks
 * @property {{title: string, state: string} | null} latest
 */

export class Grid {
  constructor() {
    this.list = get("tiles");
    /** @type {{item: HTMLElement, canvas: HTMLCanvasElement, name: HTMLElement, pill: HTMLElement, latest: HTMLElement, link: HTMLAnchorElement}[]} */
    this.tiles = [];
    this.filter = /** @type {HTMLInputElement} */ (get("grid-filter"));
    this.filter.addEventListener("input", () => this.sift());
  }

  /** @param {Summary[]} summaries */
  put(summaries) {
    while (this.tiles.length < summaries.length) this.add();
    summaries.forEach((summary, index) => {
      const tile = this.tiles[index];
      const [text, kind] = stateOf(summary);
      tile.name.textContent = summary.name;
      tile.pill.textContent = text;
      tile.pill.className = `pill ${kind}`;
      tile.latest.textContent = summary.latest ? summary.latest.title : "No operation yet";
      tile.link.setAttribute("aria-label", `${summary.name}: ${text}`);
      tile.item.dataset.name = summary.name.toLowerCase();
      if (summary.hidden) tile.canvas.getContext("2d", { alpha: false })?.fillRect(0, 0, tile.canvas.width, tile.canvas.height);
    });
    const waiting = summaries.filter((summary) => summary.asks).length;
    get("grid-state").textContent = waiting ? `${waiting} of ${summaries.length} wait for you` : `${summaries.length} desktops`;
    get("grid-state").className = waiting ? "pill asks" : "pill";
    this.sift();
  }

  add() {
    const canvas = /** @type {HTMLCanvasElement} */ (make("canvas", "thumbnail"));
    canvas.width = 320;
    canvas.height = 200;
    const [name, pill, latest] = [make("h2"), make("span", "pill"), make("p", "latest")];
    const link = /** @type {HTMLAnchorElement} */ (make("a", "tile", canvas, make("div", "tile-head", name, pill), latest));
    link.href = `#/${this.tiles.length}`;
    const item = make("li", "", link);
    this.list.append(item);
    this.tiles.push({ item, canvas, name, pill, latest, link });
  }

  sift() {
    const wanted = this.filter.value.toLowerCase();
    let shown = 0;
    for (const { item } of this.tiles) {
      item.hidden = !(item.dataset.name ?? "").includes(wanted);
      shown += Number(!item.hidden);
    }
    get("tiles-none").hidden = shown > 0 || !this.tiles.length;
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
