// One desktop: its picture, what happens on it, and a person's hands.

import { Cards } from "./cards.js";
import { Copied, asFiles, asPicture, dropped, offer } from "./clipboard.js";
import { ask, box, field } from "./dialogs.js";
import { get, toast } from "./dom.js";
import { Input } from "./input.js";
import { Operations } from "./operations.js";
import { Picture, decode } from "./picture.js";
import { Pointed } from "./pointed.js";
import { Transfers } from "./transfers.js";

/**
 * @typedef {object} State
 * @property {string} name
 * @property {number[]} size
 * @property {string} loss
 * @property {boolean} agent
 * @property {boolean} controllable
 * @property {number} viewers
 * @property {boolean} stopped
 * @property {boolean} hidden
 * @property {string[]} scopes
 * @property {{by: string, since: number, private: boolean, mine: boolean} | null} holder
 * @property {{by: string, since: number} | null} paused
 * @property {string[]} waiting
 * @property {{id: number, reason: string, since: number}[]} requests
 * @property {{id: number, class: string, details: string[][], desktop: string, asks: string, window: string | null, until: number, repeatable: boolean}[]} questions
 */

export class Live {
  /**
   * @param {import("./messages.js").Send} send
   * @param {(piece: ArrayBuffer) => void} sendPiece
   */
  constructor(send, sendPiece) {
    this.send = send;
    this.transfers = new Transfers(send, sendPiece);
    this.copies = new Copied();
    this.picture = new Picture(/** @type {HTMLCanvasElement} */ (get("picture")));
    this.operations = new Operations();
    this.input = new Input(this.picture.canvas, /** @type {HTMLTextAreaElement} */ (get("keys")), send);
    this.pointed = new Pointed(this.picture.canvas, (event) => this.input.place(event), send);
    /** @type {State | undefined} */
    this.state = undefined;
    this.exact = false;
    this.cards = new Cards(send, () => this.take());
    this.hadControl = false;
    this.buttons();
    new ResizeObserver(() => this.fit()).observe(get("stage"));
    this.input.onsticky = () => this.sticky();
    this.input.onfiles = (files) => this.transfers.add(asFiles(files));
    this.input.onpicture = async (file) => {
      const picture = await asPicture(file);
      if (this.hadControl) this.transfers.add([picture]);
    };
    this.drops();
    this.input.ontoolong = (length) => toast(`This text has ${length.toLocaleString()} characters; at most 65,536 are pasted.`);
  }

  buttons() {
    const press = (/** @type {string} */ id, /** @type {() => void} */ act) => get(id).addEventListener("click", act);
    press("take", () => (this.state?.holder?.mine ? this.release() : this.take()));
    press("pause", () => this.send({ type: this.state?.paused ? "resume" : "pause" }));
    press("step", () => this.send({ type: "step" }));
    press("stop", () => this.stop());
    press("scale", () => {
      this.exact = !this.exact;
      get("scale").setAttribute("aria-pressed", String(this.exact));
      this.fit();
    });
    press("full", () => {
      if (document.fullscreenElement) document.exitFullscreen();
      else get("stage").requestFullscreen().catch(() => toast("This browser does not show it in full screen."));
    });
    press("panel-toggle", () => {
      const hidden = get("work").classList.toggle("no-panel");
      get("panel-toggle").setAttribute("aria-pressed", String(!hidden));
    });
    press("paste", () => this.paste());
    press("copy", () => this.send({ type: "copy" }));
    press("keyboard", () => this.input.keys.focus());
    const files = /** @type {HTMLInputElement} */ (get("files"));
    press("send-files", () => files.click());
    files.addEventListener("change", () => {
      this.transfers.add(asFiles([...(files.files ?? [])]));
      files.value = "";
      this.input.keys.focus();
    });
    for (const each of get("hands").querySelectorAll("button")) {
      // A press must not take the focus from the desktop's keyboard.
      if (each.dataset.key || each.dataset.modifier) each.addEventListener("pointerdown", (event) => event.preventDefault());
      if (each.dataset.key) each.addEventListener("click", () => this.input.tap(each.dataset.key ?? ""));
      const modifier = modifierOf(each);
      if (modifier) each.addEventListener("click", () => this.input.stick(modifier));
    }
  }

  /** Files that are dropped on the page go to the desktop; a browser would leave the page and show them. */
  drops() {
    const stage = get("stage");
    const over = (/** @type {DragEvent} */ event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = this.hadControl ? "copy" : "none";
      stage.classList.toggle("dropping", this.hadControl);
    };
    addEventListener("dragenter", over);
    addEventListener("dragover", over);
    addEventListener("dragleave", (event) => event.relatedTarget === null && stage.classList.remove("dropping"));
    addEventListener("drop", (event) => {
      stage.classList.remove("dropping");
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      if (this.hadControl) this.transfers.add(dropped(event.dataTransfer));
    });
  }

  sticky() {
    for (const each of get("hands").querySelectorAll("button")) {
      const modifier = modifierOf(each);
      if (modifier) each.setAttribute("aria-pressed", String(this.input.sticky.has(modifier)));
    }
  }

  /** Begin with another desktop, or anew. */
  reset() {
    this.operations.clear();
    this.picture.clear();
    this.pointed.clear();
    this.state = undefined;
    this.cards.clear();
    this.lost();
  }

  /** There is no control any more. */
  lost() {
    if (this.hadControl) {
      toast("You do not have control any more.", "note");
      // Without a connection the page does not learn this.
      get("hands").hidden = true;
      get("take").textContent = "Take control";
    }
    this.hadControl = false;
    this.input.enable(false);
    this.transfers.lost();
  }

  /** @param {ArrayBuffer} data */
  async draw(data) {
    const update = await decode(data);
    if (this.picture.draw(update)) this.fit();
    this.pointed.changed();
  }

  /** Fit the picture into its place, or show it pixel by pixel. */
  fit() {
    const { canvas } = this.picture;
    const stage = get("stage");
    const ratio = window.devicePixelRatio || 1;
    const room = Math.min(stage.clientWidth / canvas.width, stage.clientHeight / canvas.height);
    const scale = this.exact ? 1 / ratio : room;
    const frame = get("frame");
    frame.style.width = `${Math.max(1, Math.floor(canvas.width * scale))}px`;
    frame.style.height = `${Math.max(1, Math.floor(canvas.height * scale))}px`;
    stage.classList.toggle("exact", this.exact);
    canvas.classList.toggle("sharp", this.exact || scale * ratio >= 2);
    for (const drawing of ["marks", "outline"]) get(drawing).setAttribute("viewBox", `0 0 ${canvas.width} ${canvas.height}`);
  }

  /** @param {State} state */
  show(state) {
    this.state = state;
    const { holder } = state;
    const mine = Boolean(holder?.mine);
    const controls = state.controllable && state.scopes.includes("control");
    document.title = `${state.questions.length || state.requests.length ? "● " : ""}${state.name} · deskhand`;
    get("name").textContent = state.name;
    const [text, kind] = stateOf(state);
    get("state").textContent = text;
    get("state").className = `pill ${kind}`;
    const take = get("take");
    take.hidden = !controls || state.stopped;
    take.textContent = mine ? "Hand back" : "Take control";
    get("agent-buttons").hidden = !controls || !state.agent || state.stopped;
    get("pause").textContent = state.paused ? "Resume" : "Pause";
    get("step").hidden = !state.paused;
    get("stop").hidden = !state.agent || state.stopped || !(controls || state.scopes.includes("approve"));
    get("unknown").hidden = state.agent;
    get("unknown").textContent = "The agent of this desktop runs in another process: what it does is seen on the picture only.";
    const curtain = state.hidden ? `${holder?.by ?? "Someone"} has control privately: the desktop is not shown.` : state.loss;
    get("curtain").textContent = curtain;
    get("curtain").hidden = !curtain;
    if (state.hidden) {
      this.picture.clear();
      this.operations.show(undefined);
      this.pointed.clear();
    }
    get("hands").hidden = !mine;
    if (mine) this.input.enable(true);
    if (!mine) this.lost();
    this.hadControl = mine;
    this.cards.show(state);
  }

  /** @param {{error?: string, clipboard?: string}[]} answers */
  answers(answers) {
    for (const { error, clipboard } of answers) {
      if (error !== undefined) toast(error);
      if (clipboard !== undefined) this.copied(clipboard);
    }
  }

  /** @param {{size: number, at: number, data: string}} piece */
  async copiedPicture(piece) {
    const picture = this.copies.put(piece);
    if (!picture) return;
    await offer(picture);
    this.input.keys.focus();
  }

  async take() {
    const holder = this.state?.holder;
    get("take-text").textContent = holder
      ? `${holder.by} has control. If you take it, that ends.`
      : "The agent cannot act until you hand back. What it has pressed is released first.";
    box("take-private").checked = false;
    if ((await ask("take-dialog")) === "take") this.send({ type: "take", private: box("take-private").checked, force: Boolean(holder) });
  }

  async release() {
    field("note").value = "";
    if ((await ask("release-dialog")) === "release") this.send({ type: "release", note: field("note").value });
    else this.input.keys.focus();
  }

  async stop() {
    if ((await ask("stop-dialog")) === "stop") this.send({ type: "stop" });
  }

  async paste() {
    field("paste-text").value = "";
    const chosen = await ask("paste-dialog");
    const text = field("paste-text").value;
    if (chosen && text) this.send({ type: "paste", text, keys: chosen === "paste" });
    this.input.keys.focus();
  }

  /** @param {string} text */
  async copied(text) {
    if (!text) {
      toast("The clipboard of the desktop has neither text nor a picture.", "note");
      return;
    }
    field("copy-text").value = text;
    if ((await ask("copy-dialog")) === "copy") {
      await navigator.clipboard.writeText(text).then(
        () => toast("Copied.", "note"),
        () => toast("This browser does not let the page copy: mark the text and copy it yourself."),
      );
    }
    this.input.keys.focus();
  }
}

/** @param {HTMLElement} element */
function modifierOf(element) {
  return /** @type {import("./messages.js").Modifier | undefined} */ (element.dataset.modifier);
}

/**
 * @param {State} state
 * @returns {[string, string]}
 */
function stateOf(state) {
  if (state.loss) return ["No picture", "lost"];
  if (state.stopped) return ["Stopped", "stopped"];
  if (state.holder?.mine) return [state.holder.private ? "You have control, privately" : "You have control", "held mine"];
  if (state.holder) return [`${state.holder.by} has control`, "held"];
  if (state.questions.length || state.requests.length) return ["Waits for you", "asks"];
  if (state.paused) return [`Paused by ${state.paused.by}`, "paused"];
  return ["Live", "good"];
}
