// The element below the viewer's pointer: asked for while it rests on the picture, outlined and named.

import { draw, get, make } from "./dom.js";

/** @typedef {{ref: string, role: string, name: string, box: [number, number, number, number] | null}} Seen */
/** @typedef {{at: [number, number], element: Seen | null, none: string}} Found */

const RESTS_AFTER = 120;
const AGAIN = 500;
const GAP = 6;

export class Pointed {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {(event: {clientX: number, clientY: number}) => {x: number, y: number}} place where an event is on the desktop
   * @param {import("./messages.js").Send} send
   */
  constructor(canvas, place, send) {
    this.canvas = canvas;
    this.send = send;
    this.on = false;
    /** @type {{x: number, y: number} | undefined} */
    this.at = undefined;
    this.timer = 0;
    this.said = "";
    this.outline = /** @type {SVGSVGElement} */ (get("outline"));
    this.label = get("pointed");
    const points = (/** @type {PointerEvent} */ event) => this.on && this.rest(place(event));
    canvas.addEventListener("pointermove", points);
    canvas.addEventListener("pointerdown", points);
    canvas.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && this.clear());
    get("elements").addEventListener("click", () => this.toggle());
  }

  toggle() {
    this.on = !this.on;
    get("elements").setAttribute("aria-pressed", String(this.on));
    this.clear();
  }

  /** @param {{x: number, y: number}} at */
  rest(at) {
    if (this.at && this.at.x === at.x && this.at.y === at.y) return;
    this.clear();
    this.at = at;
    this.timer = window.setTimeout(() => this.ask(), RESTS_AFTER);
  }

  ask() {
    this.timer = 0;
    if (this.on && this.at) this.send({ type: "point", ...this.at });
  }

  /** Ask once more: the picture has changed. */
  changed() {
    if (this.on && this.at && !this.timer) this.timer = window.setTimeout(() => this.ask(), AGAIN);
  }

  clear() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.at = undefined;
    this.outline.replaceChildren();
    this.label.hidden = true;
    this.said = "";
  }

  /** @param {Found} found */
  show({ at: [x, y], element, none }) {
    // The pointer may have gone on meanwhile.
    if (!this.on || this.at?.x !== x || this.at.y !== y) return;
    const said = JSON.stringify([element, none]);
    if (said === this.said) return;
    this.said = said;
    const [left, top, width, height] = element?.box ?? [x, y, 0, 0];
    const shape = { x: left, y: top, width: Math.max(1, width), height: Math.max(1, height), class: "element" };
    this.outline.replaceChildren(...(element ? [draw("rect", shape)] : []));
    const words = element
      ? [make("span", "role", element.role), make("span", "name", element.name), make("span", "ref", element.ref)]
      : [make("span", "role", none)];
    this.label.replaceChildren(...words.filter((each) => each.textContent));
    this.label.hidden = false;
    this.put(left, top, height);
  }

  /**
   * Put the label below the element, above it, or where neither fits, at the edge of the picture.
   * @param {number} x
   * @param {number} y
   * @param {number} height
   */
  put(x, y, height) {
    const frame = get("frame");
    const scale = frame.clientWidth / this.canvas.width;
    const [far, low] = [frame.clientWidth - this.label.offsetWidth, frame.clientHeight - this.label.offsetHeight];
    const below = (y + height) * scale + GAP;
    const above = y * scale - this.label.offsetHeight - GAP;
    const top = below <= low ? below : above >= 0 ? above : low - GAP;
    this.label.style.left = `${Math.max(0, Math.min(far, x * scale))}px`;
    this.label.style.top = `${Math.max(0, top)}px`;
  }
}
