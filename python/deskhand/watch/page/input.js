// A person's pointer and keys, as messages to the desktop.
//
// The browser has applied the person's own layout and input method: characters are sent as texts, whatever layout the desktop
// has. Named keys are pressed and released.

// Each button has a bit in `buttons` of an event. Of those that are pressed while another one is, browsers tell in that way only.
/** @type {[Button, number][]} */
const BUTTONS = [["left", 1], ["right", 2], ["middle", 4], ["back", 8], ["forward", 16]];
/** @type {Modifier[]} */
const MODIFIERS = ["ctrl", "shift", "alt", "super"];
const NOTCH = { 0: 100, 1: 3, 2: 1 };
const LEFT_OUT = new Set(["AltGraph", "CapsLock", "NumLock", "ScrollLock", "Dead", "Process", "Unidentified", "Fn", "FnLock", "Hyper", "Compose"]);
const MOVES = 25;
const LONG_PRESS = 600;
const NEAR = 12;

/** @typedef {import("./messages.js").Send} Send */
/** @typedef {import("./messages.js").Button} Button */
/** @typedef {import("./messages.js").Modifier} Modifier */

export class Input {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {HTMLTextAreaElement} keys takes the focus while a person types
   * @param {Send} send
   */
  constructor(canvas, keys, send) {
    this.canvas = canvas;
    this.keys = keys;
    this.send = send;
    this.active = false;
    /** @type {Set<Modifier>} */
    this.sticky = new Set();
    this.moved = 0;
    this.pending = 0;
    this.wheel = { x: 0, y: 0 };
    /** @type {Map<number, {x: number, y: number}>} */
    this.touches = new Map();
    this.press = 0;
    /** @type {Set<Button>} */
    this.pressed = new Set();
    /** @type {import("./messages.js").Move | undefined} */
    this.last = undefined;
    this.composing = false;

    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.up(event));
    canvas.addEventListener("pointercancel", (event) => this.up(event));
    // The focus stays with the keyboard, and the buttons for going back and forward are the desktop's.
    for (const type of ["mousedown", "mouseup"]) canvas.addEventListener(type, (event) => this.active && event.preventDefault());
    canvas.addEventListener("wheel", (event) => this.roll(event), { passive: false });
    canvas.addEventListener("contextmenu", (event) => this.active && event.preventDefault());
    keys.addEventListener("keydown", (event) => this.key(event, true));
    keys.addEventListener("keyup", (event) => this.key(event, false));
    keys.addEventListener("compositionstart", () => (this.composing = true));
    keys.addEventListener("compositionend", (event) => this.composed(event));
    keys.addEventListener("input", (event) => this.typed(/** @type {InputEvent} */ (event)));
    keys.addEventListener("paste", (event) => this.pasted(event));
    keys.addEventListener("blur", () => this.active && this.send({ type: "blur" }));
  }

  /** @param {boolean} active */
  enable(active) {
    if (active === this.active) return;
    this.active = active;
    this.keys.hidden = !active;
    this.canvas.classList.toggle("mine", active);
    this.unstick();
    this.pressed.clear();
    this.touches.clear();
    clearTimeout(this.press);
    clearTimeout(this.pending);
    this.press = this.pending = 0;
    this.last = undefined;
    this.composing = false;
    this.keys.value = "";
    // With fingers alone it would bring up a keyboard that covers the picture; there is a button for that.
    if (active && matchMedia("(any-pointer: fine)").matches) this.keys.focus({ preventScroll: true });
  }

  /**
   * Where an event is, in pixels of the desktop.
   * @param {{clientX: number, clientY: number}} event
   */
  place(event) {
    const box = this.canvas.getBoundingClientRect();
    const within = (/** @type {number} */ value, /** @type {number} */ length, /** @type {number} */ pixels) =>
      Math.max(0, Math.min(pixels - 1, Math.floor((value / length) * pixels)));
    return {
      x: within(event.clientX - box.left, box.width, this.canvas.width),
      y: within(event.clientY - box.top, box.height, this.canvas.height),
    };
  }

  /** @param {MouseEvent | KeyboardEvent} event */
  modifiers(event) {
    const held = { ctrl: event.ctrlKey, shift: event.shiftKey, alt: event.altKey, super: event.metaKey };
    return MODIFIERS.filter((name) => held[name] || this.sticky.has(name));
  }

  /** @param {PointerEvent} event */
  down(event) {
    if (!this.active) return;
    this.canvas.setPointerCapture(event.pointerId);
    if (event.pointerType === "touch") {
      this.touches.set(event.pointerId, { x: event.clientX, y: event.clientY });
      clearTimeout(this.press);
      if (this.touches.size === 1) {
        const at = this.place(event);
        this.press = window.setTimeout(() => this.click("right", at), LONG_PRESS);
      }
      return;
    }
    this.keys.focus({ preventScroll: true });
    this.buttons(event, true);
  }

  /**
   * Press and release what has been on the mouse.
   * @param {PointerEvent} event
   * @param {boolean} presses whether a button may have been pressed on the picture
   */
  buttons(event, presses) {
    for (const [button, bit] of BUTTONS) {
      const down = Boolean(event.buttons & bit);
      if (down === this.pressed.has(button) || (down && !presses)) continue;
      this.button(button, down, this.place(event), this.modifiers(event));
    }
  }

  /** @param {PointerEvent} event */
  move(event) {
    if (!this.active) return;
    if (event.pointerType === "touch") {
      this.touch(event);
      return;
    }
    this.buttons(event, event.button >= 0);
    this.last = { type: "move", ...this.place(event) };
    // At most so many a second, and always the last one.
    if (!this.pending) this.pending = window.setTimeout(() => this.flush(), Math.max(0, this.moved + MOVES - performance.now()));
  }

  flush() {
    clearTimeout(this.pending);
    this.pending = 0;
    if (this.last) this.send(this.last);
    this.last = undefined;
    this.moved = performance.now();
  }

  /** @param {PointerEvent} event */
  up(event) {
    if (!this.active) return;
    if (event.pointerType === "touch") {
      const began = this.touches.get(event.pointerId);
      this.touches.delete(event.pointerId);
      if (this.pressed.has("left")) this.button("left", false, this.place(event));
      else if (began && this.press && event.type === "pointerup" && !this.touches.size) this.click("left", this.place(event));
      clearTimeout(this.press);
      this.press = 0;
      return;
    }
    this.buttons(event, false);
  }

  /** @param {PointerEvent} event */
  touch(event) {
    const before = this.touches.get(event.pointerId);
    if (!before) return;
    if (this.touches.size > 1) {
      clearTimeout(this.press);
      this.press = 0;
      this.touches.set(event.pointerId, { x: event.clientX, y: event.clientY });
      this.scroll(this.place(event), (before.x - event.clientX) * 2, (before.y - event.clientY) * 2, []);
      return;
    }
    if (!this.pressed.has("left")) {
      if (!this.press || Math.hypot(event.clientX - before.x, event.clientY - before.y) < NEAR) return;
      clearTimeout(this.press);
      this.press = 0;
      this.button("left", true, this.place({ clientX: before.x, clientY: before.y }));
    }
    this.last = { type: "move", ...this.place(event) };
    if (!this.pending) this.pending = window.setTimeout(() => this.flush(), MOVES);
  }

  /**
   * @param {Button} button
   * @param {boolean} down
   * @param {{x: number, y: number}} at
   * @param {Modifier[]} [modifiers]
   */
  button(button, down, at, modifiers = [...this.sticky]) {
    this.flush();
    if (down) this.pressed.add(button);
    else this.pressed.delete(button);
    this.send({ type: "button", ...at, button, down, modifiers });
    if (!down) this.unstick();
  }

  /**
   * @param {Button} button
   * @param {{x: number, y: number}} at
   */
  click(button, at) {
    this.press = 0;
    this.button(button, true, at);
    this.button(button, false, at);
  }

  /** @param {WheelEvent} event */
  roll(event) {
    if (!this.active) return;
    event.preventDefault();
    const unit = NOTCH[/** @type {0 | 1 | 2} */ (event.deltaMode)] ?? 100;
    const notches = [(event.deltaX * 100) / unit, (event.deltaY * 100) / unit];
    // With Shift some browsers turn the wheel sideways, which applications on the desktop do themselves.
    const [across = 0, down = 0] = event.shiftKey && !event.deltaY ? notches.reverse() : notches;
    this.scroll(this.place(event), across, down, this.modifiers(event));
  }

  /**
   * @param {{x: number, y: number}} at
   * @param {number} across
   * @param {number} down
   * @param {Modifier[]} modifiers
   */
  scroll(at, across, down, modifiers) {
    this.wheel.x += across;
    this.wheel.y += down;
    const [x, y] = [Math.trunc(this.wheel.x / 100), Math.trunc(this.wheel.y / 100)];
    if (!x && !y) return;
    this.wheel.x -= x * 100;
    this.wheel.y -= y * 100;
    const most = (/** @type {number} */ notches) => Math.max(-100, Math.min(100, notches));
    this.send({ type: "wheel", ...at, across: most(x), down: most(y), modifiers });
  }

  /**
   * @param {KeyboardEvent} event
   * @param {boolean} down
   */
  key(event, down) {
    if (!this.active || this.composing || event.isComposing || event.keyCode === 229 || LEFT_OUT.has(event.key)) return;
    const modifiers = this.modifiers(event);
    const character = [...event.key].length === 1;
    // A Mac types characters with Option, as other keyboards do with AltGr.
    const option = event.altKey && !event.ctrlKey && !event.metaKey && navigator.platform.startsWith("Mac");
    const altGraph = event.getModifierState("AltGraph") || (character && option && !this.sticky.size);
    const commands = altGraph ? [] : modifiers.filter((name) => name !== "shift");
    if (character) {
      // What the browser pastes comes with its text.
      if (commands.length === 1 && (commands[0] === "ctrl" || commands[0] === "super") && event.key.toLowerCase() === "v" && !this.sticky.size) return;
      event.preventDefault();
      if (!down) return;
      if (commands.length) this.send({ type: "chord", key: event.key, modifiers });
      else this.send({ type: "text", text: event.key });
      this.unstick();
      return;
    }
    if (event.key === "Insert" && modifiers.length === 1 && modifiers[0] === "shift") return;
    event.preventDefault();
    // A key that stays down repeats on the desktop by itself.
    if (down && event.repeat) return;
    this.send({ type: "key", key: event.key, down, modifiers });
    if (!down) this.unstick();
  }

  /** @param {string} key */
  tap(key) {
    const modifiers = [...this.sticky];
    this.send({ type: "key", key, down: true, modifiers });
    this.send({ type: "key", key, down: false, modifiers: [] });
    this.unstick();
    this.keys.focus({ preventScroll: true });
  }

  /**
   * Hold a modifier for what comes next.
   * @param {Modifier} name
   */
  stick(name) {
    if (!this.sticky.delete(name)) this.sticky.add(name);
    this.onsticky?.();
    this.keys.focus({ preventScroll: true });
  }

  unstick() {
    if (!this.sticky.size) return;
    this.sticky.clear();
    this.onsticky?.();
  }

  /** @type {(() => void) | undefined} */
  onsticky;

  /** @param {CompositionEvent} event */
  composed(event) {
    this.composing = false;
    if (this.active && event.data) this.send({ type: "text", text: event.data });
    this.keys.value = "";
  }

  /**
   * What keyboards on screens type comes without keys.
   * @param {InputEvent} event
   */
  typed(event) {
    if (!this.active || this.composing || event.isComposing) return;
    if (event.inputType === "insertText" && event.data) {
      const commands = [...this.sticky].filter((name) => name !== "shift");
      if (commands.length && [...event.data].length === 1) this.send({ type: "chord", key: event.data, modifiers: [...this.sticky] });
      else this.send({ type: "text", text: event.data });
      this.unstick();
    } else if (event.inputType === "insertLineBreak" || event.inputType === "insertParagraph") this.tap("Enter");
    else if (event.inputType.startsWith("deleteContentBackward")) this.tap("Backspace");
    this.keys.value = "";
  }

  /** @param {ClipboardEvent} event */
  pasted(event) {
    if (!this.active) return;
    event.preventDefault();
    const text = event.clipboardData?.getData("text/plain") ?? "";
    const files = [...(event.clipboardData?.files ?? [])];
    // A program that copies text may add a picture of it; a file manager copies files, and may add their names.
    const [picture] = files.length === 1 && files[0].type.startsWith("image/") ? files : [];
    if (files.length && !picture) this.onfiles?.(files);
    else if (text.length > 65536) this.ontoolong?.(text.length);
    else if (text) this.send({ type: "paste", text, keys: true });
    else if (picture) this.onpicture?.(picture);
    else this.send({ type: "chord", key: "v", modifiers: ["ctrl"] });
  }

  /** @type {((files: File[]) => void) | undefined} */
  onfiles;

  /** @type {((picture: File) => void) | undefined} */
  onpicture;

  /** @type {((length: number) => void) | undefined} */
  ontoolong;
}
