// The list of operations, and where each of them was on the picture.

import { clock, draw, get, make } from "./dom.js";

/**
 * @typedef {object} Operation
 * @property {number} id
 * @property {number} at
 * @property {string} by
 * @property {boolean} person
 * @property {string} kind
 * @property {string} title
 * @property {string} state
 * @property {number[][]} marks
 * @property {number[][][]} lines
 * @property {number} [milliseconds]
 * @property {boolean} [changed]
 * @property {boolean} [settled]
 * @property {Record<string, number>} [parts]
 * @property {number[][]} [rects]
 * @property {string} [text]
 */

const MOST = 500;
const SHOWN_FOR = 1800;

export class Operations {
  constructor() {
    /** @type {Map<number, {operation: Operation, row: HTMLElement}>} */
    this.rows = new Map();
    this.list = get("operations");
    this.marks = /** @type {SVGSVGElement} */ (get("marks"));
    this.filter = /** @type {HTMLInputElement} */ (get("filter"));
    this.chosen = 0;
    this.timer = 0;
    this.filter.addEventListener("input", () => this.sift());
    this.list.addEventListener("keydown", (event) => this.keys(event));
    this.list.addEventListener("click", (event) => {
      const row = event.target instanceof Element ? event.target.closest("li") : null;
      if (row) this.choose(Number(row.dataset.id));
    });
  }

  /** Forget all of them. */
  clear() {
    this.rows.clear();
    this.list.replaceChildren();
    this.marks.replaceChildren();
    this.chosen = 0;
  }

  /** @param {Operation[]} operations */
  put(operations) {
    for (const operation of operations) {
      const row = this.row(operation);
      const known = this.rows.get(operation.id);
      if (known) known.row.replaceWith(row);
      else this.list.prepend(row);
      this.rows.set(operation.id, { operation, row });
    }
    for (const [id, { row }] of this.rows) {
      if (this.rows.size <= MOST) break;
      row.remove();
      this.rows.delete(id);
    }
    this.sift();
    const last = operations.at(-1);
    if (last && !this.chosen) this.flash(last);
  }

  /** @param {Operation} operation */
  row(operation) {
    const row = make("li", `operation ${operation.state}${operation.person ? " person" : ""}`);
    row.dataset.id = String(operation.id);
    const head = make("div", "operation-head", make("span", "title", operation.title));
    if (operation.milliseconds !== undefined) head.append(make("span", "time", `${format(operation.milliseconds)} ms`));
    row.append(head);
    const about = [clock(operation.at), operation.by, said(operation)].filter(Boolean).join(" · ");
    row.append(make("div", "about", about));
    if (operation.text) row.append(make("div", "text", operation.text));
    const parts = Object.entries(operation.parts ?? {}).filter(([, value]) => value > 0);
    const total = parts.reduce((sum, [, value]) => sum + value, 0);
    if (total > 0) {
      const bar = make("div", "parts");
      bar.setAttribute("role", "img");
      bar.setAttribute("aria-label", parts.map(([name, value]) => `${name} ${format(value)} ms`).join(", "));
      bar.title = parts.map(([name, value]) => `${name} ${format(value)} ms`).join("\n");
      for (const [name, value] of parts) {
        const part = make("span", `part ${name}`);
        part.style.flexGrow = String((100 * value) / total);
        bar.append(part);
      }
      row.append(bar);
    }
    return row;
  }

  sift() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const { operation, row } of this.rows.values()) {
      const text = `${operation.title} ${operation.by} ${operation.state} ${said(operation)} ${operation.text ?? ""}`.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      row.classList.toggle("chosen", operation.id === this.chosen);
    }
  }

  /** @param {KeyboardEvent} event */
  keys(event) {
    const shown = [...this.list.children].filter((row) => row instanceof HTMLElement && !row.hidden);
    const now = shown.findIndex((row) => row instanceof HTMLElement && Number(row.dataset.id) === this.chosen);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined && event.key !== "Escape") return;
    event.preventDefault();
    const next = step === undefined ? undefined : shown[Math.max(0, Math.min(shown.length - 1, now + step))];
    this.choose(next instanceof HTMLElement ? Number(next.dataset.id) : this.chosen);
    next?.scrollIntoView({ block: "nearest" });
  }

  /**
   * Show where this operation was until another is chosen; the same once more ends that.
   * @param {number} id
   */
  choose(id) {
    this.chosen = this.chosen === id ? 0 : id;
    const found = this.rows.get(this.chosen);
    this.sift();
    clearTimeout(this.timer);
    this.show(found?.operation);
  }

  /** @param {Operation} operation */
  flash(operation) {
    if (!operation.marks.length && !operation.rects?.length) return;
    clearTimeout(this.timer);
    this.show(operation);
    this.timer = window.setTimeout(() => this.show(undefined), SHOWN_FOR);
  }

  /** @param {Operation | undefined} operation */
  show(operation) {
    const drawn = [];
    if (operation) {
      for (const [x, y, width, height] of operation.rects ?? []) {
        drawn.push(draw("rect", { x: x + 0.5, y: y + 0.5, width: Math.max(1, width - 1), height: Math.max(1, height - 1), class: "changed" }));
      }
      for (const line of operation.lines) drawn.push(draw("polyline", { points: line.map((point) => point.join(",")).join(" "), class: "path" }));
      for (const [x, y] of operation.marks) {
        drawn.push(draw("circle", { cx: x, cy: y, r: 14, class: "halo" }), draw("circle", { cx: x, cy: y, r: 4, class: "dot" }));
      }
    }
    this.marks.replaceChildren(...drawn);
  }
}

/** @param {number} milliseconds */
function format(milliseconds) {
  return milliseconds >= 100 ? milliseconds.toFixed(0) : milliseconds.toFixed(1);
}

/** @param {Operation} operation */
function said(operation) {
  if (operation.state === "running") return "under way";
  if (["denied", "refused", "failed"].includes(operation.state)) return operation.state;
  if (operation.changed === undefined) return "";
  return (operation.changed ? "changed" : "unchanged") + (operation.settled === false ? ", not settled" : "");
}
