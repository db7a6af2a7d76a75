// @ts-check
/**
 * The recorded episodes of a page, each with its pictures, its line of time and its film strip.
 *
 * @typedef {{label: string, points: number[][], arrow: number[] | null}} Mark
 * @typedef {{number: number, kind: string, t: number, lines: string[], text: string, error: string, looked: boolean,
 *   frame: number | null, before: number | null, changed: boolean, rects: number[][], busy: number[][], marks: Mark[],
 *   facts: string[], times: [string, number][]}} Moment
 * @typedef {{run: string, episode: string, agent: string, instruction: string, screen: number[], outcome: {good: boolean, text: string},
 *   why: {name: string, text: string}[], steps: number | null, tokens: (number | null)[], cost: number | null, trouble: string,
 *   leftOut: number, moments: Moment[]}} Side
 * @typedef {{side: Side, show: (index: number) => void, at: () => number, starts: number[]}} Pane
 */
const PARTS = ["input", "reaction", "settle", "capture", "encode"];
const WORDS = ["note", "answer"];
const SVG = "http://www.w3.org/2000/svg";

/** @type {{version: string, sides: Side[], pictures: string[], picturesLeftOut: number}} */
export const data = JSON.parse(found("data").textContent || "");

/** @param {string} id */
export function found(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no ${id}`);
  return element;
}

/**
 * @param {string} name
 * @param {Record<string, string>} [attributes]
 * @param {...(Node | string)} children
 */
export function made(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/**
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 */
function drawn(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  return element;
}

/** @param {number} seconds */
function spell(seconds) {
  if (seconds < 1) return `${Math.round(1000 * seconds)} ms`;
  return seconds < 120 ? `${seconds.toFixed(1)} s` : `${(seconds / 60).toFixed(1)} min`;
}

/** @param {Moment} moment */
export const secondsOf = (moment) => moment.times.reduce((sum, [, value]) => sum + value, 0);
/** @param {string} part */
const classOf = (part) => (PARTS.includes(part) ? part : "other");
/** @param {Moment} moment */
export const nameOf = (moment) => moment.lines[0] || moment.text.split("\n")[0] || moment.kind;

/**
 * Which picture shows the screen after a moment: its own, or the last one before it that is here.
 * @param {Side} side
 * @param {number} index
 */
function pictureAfter(side, index) {
  for (let earlier = index; earlier >= 0; earlier -= 1) {
    const { frame } = side.moments[earlier];
    if (frame !== null) return { picture: frame, of: earlier };
  }
  return { picture: null, of: index };
}

/**
 * @param {Side} side
 * @param {number} index
 */
function pictureBefore(side, index) {
  const { before } = side.moments[index];
  if (before !== null) return { picture: before, of: index };
  return index > 0 ? pictureAfter(side, index - 1) : { picture: null, of: index };
}

/** A picture with what is drawn on it. @param {Side} side */
function makeFrame(side) {
  const [width, height] = side.screen;
  const image = made("img", { alt: "" });
  const layer = drawn("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  const none = made("div", { class: "none" });
  const frame = made("div", { class: "frame" }, image, layer, none);
  frame.style.aspectRatio = `${width} / ${height}`;
  const caption = made("figcaption");
  return {
    figure: made("figure", {}, frame, caption),
    /**
     * @param {{picture: number | null, of: number}} what
     * @param {string} said
     * @param {SVGElement[]} shapes
     */
    show(what, said, shapes) {
      const url = what.picture === null ? "" : data.pictures[what.picture];
      image.hidden = !url;
      if (url && image.getAttribute("src") !== url) image.setAttribute("src", url);
      image.setAttribute("alt", said);
      none.hidden = Boolean(url);
      none.textContent = "no picture";
      caption.textContent = said;
      layer.replaceChildren(...shapes);
    },
  };
}

/** What changed. @param {Moment} moment */
function changes(moment) {
  const shapes = [];
  for (const [x, y, width, height] of moment.busy) shapes.push(drawn("rect", { class: "busy", x, y, width, height }));
  for (const [x, y, width, height] of moment.rects) {
    shapes.push(drawn("rect", { class: "under", x, y, width, height }), drawn("rect", { x, y, width, height }));
  }
  return shapes;
}

/** Where it was acted. @param {Moment} moment @param {Side} side */
function acted(moment, side) {
  const shapes = [];
  const size = Math.max(3, side.screen[0] / 80);
  for (const { points, arrow } of moment.marks) {
    if (!points.length) continue;
    const line = points.map((point) => point.join(",")).join(" ");
    const [x, y] = points[points.length - 1];
    for (const halo of ["halo", ""]) {
      if (points.length > 1) shapes.push(drawn("polyline", { class: halo, points: line }));
      shapes.push(drawn("circle", { class: halo, cx: x, cy: y, r: size }));
      if (arrow) shapes.push(drawn("path", { class: halo, d: `M${x} ${y}l${arrow[0] * 4 * size} ${arrow[1] * 4 * size}` }));
    }
    shapes.push(drawn("circle", { class: "dot", cx: x, cy: y, r: size / 4 }));
  }
  return shapes;
}

/** When each moment began: what it took before its time. @param {Side} side */
function beginnings(side) {
  return side.moments.map((moment) => Math.max(0, moment.t - secondsOf(moment)));
}

/** The words and numbers of a moment. @param {Side} side @param {number} index */
function details(side, index) {
  const moment = side.moments[index];
  const parts = [made("h3", {}, `${moment.number} · ${moment.kind} · ${moment.t.toFixed(2)} s`)];
  const said = [];
  for (let earlier = index - 1; earlier >= 0 && !side.moments[earlier].looked; earlier -= 1) {
    if (WORDS.includes(side.moments[earlier].kind)) said.unshift(side.moments[earlier].text);
  }
  if (said.length && !WORDS.includes(moment.kind)) {
    parts.push(made("h3", {}, "The model, before it"), made("div", { class: "words", tabindex: "0" }, said.join("\n")));
  }
  for (const line of moment.lines) parts.push(made("code", {}, line));
  if (moment.error) parts.push(made("code", { class: "bad" }, moment.error));
  if (moment.text) parts.push(WORDS.includes(moment.kind) ? made("div", { class: "words", tabindex: "0" }, moment.text) : made("pre", { tabindex: "0" }, moment.text));
  for (const fact of moment.facts) parts.push(made("p", { class: "dim" }, fact));
  const count = moment.rects.length;
  if (count) parts.push(made("p", { class: "dim" }, `${count} area${count === 1 ? "" : "s"} changed`));
  const whole = secondsOf(moment);
  if (whole > 0) {
    const bar = made("div", { class: "parts", "aria-hidden": "true" });
    const list = made("dl");
    for (const [part, value] of moment.times) {
      const piece = made("i", { class: classOf(part) });
      piece.style.width = `${(100 * value) / whole}%`;
      bar.append(piece);
      list.append(made("dt", {}, part), made("dd", {}, spell(value)));
    }
    parts.push(made("h3", {}, `Time: ${spell(whole)}`), bar, list);
  }
  return parts;
}

/** The line of time: what took how long, what changed and what failed. @param {Side} side @param {(index: number) => void} go */
function makeTimeline(side, go) {
  const starts = beginnings(side);
  const last = side.moments.reduce((end, moment) => Math.max(end, moment.t), 0) || 1;
  const wide = 1000;
  const scale = wide / last;
  const picture = drawn("svg", { class: "timeline", viewBox: `0 0 ${wide} 34`, preserveAspectRatio: "none", role: "img" });
  picture.append(drawn("rect", { class: "back", x: 0, y: 8, width: wide, height: 16 }));
  /** @type {Record<string, number>} */
  const sums = {};
  side.moments.forEach((moment, index) => {
    let x = starts[index] * scale;
    for (const [part, value] of moment.times) {
      sums[part] = (sums[part] || 0) + value;
      picture.append(drawn("rect", { class: classOf(part), x, y: 8, width: Math.max(value * scale, 0.2), height: 16 }));
      x += value * scale;
    }
    if (moment.changed) picture.append(drawn("rect", { class: "changed", x: moment.t * scale - 1, y: 26, width: 2, height: 6 }));
    if (moment.error) picture.append(drawn("rect", { class: "failed", x: moment.t * scale - 2, y: 1, width: 4, height: 6 }));
  });
  const now = drawn("rect", { class: "now", x: 0, y: 0, width: 2, height: 34 });
  picture.append(now);
  const measured = Object.values(sums).reduce((sum, value) => sum + value, 0);
  const legend = made("ul", { class: "legend" });
  /** @param {string} part @param {number} value */
  const entry = (part, value) => legend.append(made("li", {}, made("i", { class: part === "between" ? part : classOf(part) }), `${part} ${spell(value)}`));
  for (const [part, value] of Object.entries(sums)) if (value > 0) entry(part, value);
  if (last > measured) entry("between", last - measured);
  picture.setAttribute("aria-label", `Time by part, ${spell(last)} in all`);
  /** @param {PointerEvent} event */
  const seek = (event) => {
    const box = picture.getBoundingClientRect();
    const time = ((event.clientX - box.left) / box.width) * last;
    go(nearest(side, time));
  };
  picture.addEventListener("pointerdown", (event) => {
    picture.setPointerCapture(event.pointerId);
    seek(event);
  });
  picture.addEventListener("pointermove", (event) => {
    if (picture.hasPointerCapture(event.pointerId)) seek(event);
  });
  /** @param {number} index */
  const show = (index) => now.setAttribute("x", String(side.moments[index].t * scale - 1));
  return { picture, legend, starts, show };
}

/** The last moment at a time. @param {Side} side @param {number} time */
export function nearest(side, time) {
  let best = 0;
  side.moments.forEach((moment, index) => {
    if (moment.t <= time) best = index;
  });
  return best;
}

const watching = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      const image = /** @type {HTMLImageElement} */ (target);
      // Pictures out of sight are not kept decoded.
      if (isIntersecting) image.setAttribute("src", data.pictures[Number(image.dataset.picture)]);
      else image.removeAttribute("src");
    }
  },
  { rootMargin: "300px" },
);

/** The film strip. @param {Side} side @param {(index: number) => void} go */
function makeStrip(side, go) {
  const strip = made("div", { class: "strip", role: "group", "aria-label": `Steps of ${side.run}` });
  const buttons = side.moments.map((moment, index) => {
    const thumb = made("span", { class: "thumb" });
    thumb.style.aspectRatio = `${side.screen[0]} / ${side.screen[1]}`;
    if (moment.frame !== null) {
      const image = made("img", { alt: "" });
      image.dataset.picture = String(moment.frame);
      watching.observe(image);
      thumb.append(image);
    } else {
      thumb.classList.add("word");
      thumb.append(moment.kind.replace("_", " "));
    }
    const flags = made("span", { class: "flags" });
    if (moment.changed) flags.append(made("span", { class: "flag changed", title: "the screen changed" }));
    if (moment.error) flags.append(made("span", { class: "flag failed", title: "it failed" }));
    const label = `Step ${moment.number}, ${moment.kind}: ${nameOf(moment)}${moment.error ? ", failed" : ""}`;
    const button = made("button", { type: "button", "aria-label": label }, thumb, flags, made("span", { class: "name" }, `${moment.number} ${nameOf(moment)}`));
    button.addEventListener("click", () => go(index));
    strip.append(button);
    return button;
  });
  let current = -1;
  return {
    strip,
    /** @param {number} index */
    show(index) {
      buttons[current]?.removeAttribute("aria-current");
      current = index;
      const button = buttons[index];
      button.setAttribute("aria-current", "step");
      const left = button.offsetLeft - strip.offsetLeft;
      if (left < strip.scrollLeft || left + button.offsetWidth > strip.scrollLeft + strip.clientWidth) {
        strip.scrollLeft = left - (strip.clientWidth - button.offsetWidth) / 2;
      }
    },
  };
}

/** One episode. @param {Side} side @param {(index: number) => void} go @returns {Pane} */
export function makePane(side, go) {
  const outcome = made("span", { class: side.outcome.good ? "ok" : "bad" }, side.outcome.text);
  const [tokensIn, tokensOut] = side.tokens;
  const numbers = [`${side.moments.length} moments`];
  if (side.steps !== null) numbers.push(`${side.steps} steps`);
  if (tokensIn || tokensOut) numbers.push(`${tokensIn || 0} tokens in, ${tokensOut || 0} out`);
  if (side.cost) numbers.push(`cost ${side.cost}`);
  const pane = made("section", { class: "side", "aria-label": side.run });
  pane.append(made("h2", {}, side.run, outcome, made("span", { class: "dim" }, [side.agent, ...numbers].filter(Boolean).join(" · "))));
  for (const { name, text } of side.why) pane.append(made("p", { class: "dim" }, `${name}: ${text}`));
  if (side.trouble) pane.append(made("p", { class: "bad" }, `Not all of it can be shown: ${side.trouble}`));
  if (side.leftOut) pane.append(made("p", { class: "bad" }, `The page shows the first ${side.moments.length} moments; ${side.leftOut} more are left out.`));
  const first = makeFrame(side);
  const second = makeFrame(side);
  const stage = made("div", { class: "stage" }, first.figure, second.figure);
  const panel = made("div", { class: "panel" });
  const timeline = makeTimeline(side, go);
  const strip = makeStrip(side, go);
  pane.append(made("div", { class: "split" }, made("div", {}, stage, timeline.picture, timeline.legend), panel), strip.strip);
  found("sides").append(pane);
  let at = 0;
  return {
    side,
    starts: timeline.starts,
    at: () => at,
    show(index) {
      at = index;
      const moment = side.moments[index];
      const mode = selected("mode");
      const marks = /** @type {HTMLInputElement} */ (found("overlay")).checked;
      const after = pictureAfter(side, index);
      const before = pictureBefore(side, index);
      const of = side.moments[after.of].number;
      let said = `The screen after step ${of}`;
      if (after.picture === null) said = `There is no picture of step ${moment.number}, nor of an earlier one`;
      else if (moment.looked && moment.frame === null) said += `: there is no picture of step ${moment.number}`;
      else if (!moment.looked) said = `The screen, as it was after step ${of}`;
      const where = marks ? acted(moment, side) : [];
      const what = marks ? changes(moment) : [];
      stage.classList.toggle("both", mode === "both");
      second.figure.hidden = mode !== "both";
      if (mode === "after") first.show(after, said, [...what, ...where]);
      else first.show(before, `The screen before step ${moment.number}`, mode === "both" ? where : [...what, ...where]);
      if (mode === "both") second.show(after, said, what);
      panel.replaceChildren(...details(side, index));
      timeline.show(index);
      strip.show(index);
    },
  };
}

/** @param {string} id */
export const selected = (id) => /** @type {HTMLSelectElement} */ (found(id)).value;
