// @ts-check
/**
 * Plays a recorded episode, or two beside one another. All of it is in the page: nothing is loaded, and every text of the recording is
 * set as text. What the modules import of one another is joined when the page is written.
 *
 * @typedef {import("./panes.js").Moment} Moment
 * @typedef {import("./panes.js").Side} Side
 */
import { data, found, made, makePane, nameOf, nearest, secondsOf, selected } from "./panes.js";

// What is no step of the agent.
const AROUND = ["reset", "setup", "evaluate"];

const sides = data.sides;
const scrubber = /** @type {HTMLInputElement} */ (found("scrubber"));
/** The side whose steps the scrubber counts: the one with the most. */
const leading = sides.reduce((best, side, index) => (side.moments.length > sides[best].moments.length ? index : best), 0);
const lead = sides[leading];
let position = 0;
/** @type {number | undefined} */
let timer;

found("title").textContent = lead.episode;
found("instruction").textContent = lead.instruction || sides[0].instruction;
found("made").textContent = `Made by deskhand ${data.version}. Pictures are no wider than 1280 pixels, and not lossless; the directory of the run has every pixel.`;
if (data.picturesLeftOut) {
  found("warning").hidden = false;
  found("warning").textContent = `${data.picturesLeftOut} pictures are left out, because the page would be too large. Its steps say where.`;
}
if (sides.length > 1) {
  found("sides").classList.add("two");
  found("align-label").hidden = false;
}

const panes = sides.filter((side) => side.moments.length).map((side) => makePane(side, (index) => goOn(side, index)));
for (const side of sides) {
  if (!side.moments.length) found("sides").append(made("section", { class: "side" }, made("h2", {}, side.run), made("p", { class: "bad" }, side.trouble || "Nothing was recorded.")));
}
scrubber.max = String(Math.max(0, lead.moments.length - 1));
scrubber.disabled = lead.moments.length < 2;

/** Show a step of one side, and the others with it. @param {Side} side @param {number} index */
function goOn(side, index) {
  if (side === lead) return go(index);
  if (selected("align") === "time") return go(nearest(lead, side.moments[index].t));
  return go(index);
}

/** @param {number} index */
function go(index) {
  if (!panes.length) return;
  position = Math.max(0, Math.min(lead.moments.length - 1, index));
  const time = lead.moments[position].t;
  for (const pane of panes) {
    const there = pane.side === lead ? position : selected("align") === "time" ? nearest(pane.side, time) : Math.min(position, pane.side.moments.length - 1);
    pane.show(there);
  }
  scrubber.value = String(position);
  const said = `${position + 1} of ${lead.moments.length}, ${time.toFixed(1)} s`;
  found("where").textContent = said;
  scrubber.setAttribute("aria-valuetext", `${said}: ${nameOf(lead.moments[position])}`);
  found("back").toggleAttribute("disabled", position === 0);
  found("first").toggleAttribute("disabled", position === 0);
  found("on").toggleAttribute("disabled", position === lead.moments.length - 1);
  found("last").toggleAttribute("disabled", position === lead.moments.length - 1);
}

/** The next step of any side that is of a kind, beginning again at the end. @param {(moment: Moment) => unknown} wanted */
function next(wanted) {
  for (let far = 1; far <= lead.moments.length; far += 1) {
    const index = (position + far) % lead.moments.length;
    if (panes.some((pane) => pane.side.moments[index] && wanted(pane.side.moments[index]))) return go(index);
  }
  return undefined;
}

function slowest() {
  let best = 0;
  let most = 0;
  lead.moments.forEach((moment, index) => {
    if (secondsOf(moment) > most && !AROUND.includes(moment.kind)) [best, most] = [index, secondsOf(moment)];
  });
  go(best);
}

/** @param {boolean} playing */
function play(playing) {
  window.clearTimeout(timer);
  timer = undefined;
  found("play").setAttribute("aria-pressed", String(playing));
  found("play").setAttribute("aria-label", playing ? "Pause" : "Play");
  if (!playing) return;
  if (position >= lead.moments.length - 1) go(0);
  const step = () => {
    if (position >= lead.moments.length - 1) return play(false);
    const passed = lead.moments[position + 1].t - lead.moments[position].t;
    timer = window.setTimeout(() => {
      go(position + 1);
      step();
    }, (1000 * Math.min(2, Math.max(0.25, passed))) / Number(selected("speed")));
    return undefined;
  };
  step();
}

const playing = () => timer !== undefined;
/** @type {Record<string, () => void>} */
const acts = {
  first: () => go(0),
  back: () => go(position - 1),
  on: () => go(position + 1),
  last: () => go(lead.moments.length - 1),
  play: () => play(!playing()),
  "to-change": () => next((moment) => moment.changed),
  "to-failure": () => next((moment) => moment.error),
  "to-slowest": slowest,
};
for (const [id, act] of Object.entries(acts)) {
  found(id).addEventListener("click", () => {
    if (id !== "play") play(false);
    act();
  });
}
const every = panes.flatMap((pane) => pane.side.moments);
found("to-change").toggleAttribute("disabled", !every.some((moment) => moment.changed));
found("to-failure").toggleAttribute("disabled", !every.some((moment) => moment.error));
scrubber.addEventListener("input", () => {
  play(false);
  go(Number(scrubber.value));
});
for (const id of ["mode", "overlay", "align"]) found(id).addEventListener("change", () => go(position));

/** @type {Record<string, string>} */
const keys = { ArrowLeft: "back", ArrowRight: "on", Home: "first", End: "last", " ": "play", c: "to-change", f: "to-failure", s: "to-slowest" };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const target = event.target;
  if (target instanceof HTMLSelectElement || (target instanceof HTMLInputElement && event.key !== "b" && event.key !== "m" && !(event.key in keys))) return;
  if (target instanceof HTMLInputElement && target.type === "checkbox" && event.key === " ") return;
  if (target instanceof HTMLButtonElement && event.key === " ") return;
  if (event.key === "b") {
    const mode = /** @type {HTMLSelectElement} */ (found("mode"));
    mode.value = mode.value === "before" ? "after" : "before";
    go(position);
  } else if (event.key === "m") {
    const marks = /** @type {HTMLInputElement} */ (found("overlay"));
    marks.checked = !marks.checked;
    go(position);
  } else if (event.key in keys) {
    found(keys[event.key]).click();
  } else {
    return;
  }
  event.preventDefault();
});

const wanted = Number(location.hash.slice(1)) - 1;
go(Number.isInteger(wanted) ? wanted : 0);
