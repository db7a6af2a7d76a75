// What the page and its server say to one another, as types for the other modules: there is nothing here to load. The server checks
// every message of a page (messages.py).

/**
 * What the page sends.
 *
 * @typedef {"ctrl" | "shift" | "alt" | "super"} Modifier
 * @typedef {"left" | "middle" | "right" | "back" | "forward"} Button
 *
 * @typedef {{type: "ack", sequence: number}} Ack
 * @typedef {{type: "point", x: number, y: number}} Point
 * @typedef {{type: "take", private: boolean, force: boolean}} Take
 * @typedef {{type: "release", note: string}} Release
 * @typedef {{type: "pause"}} Pause
 * @typedef {{type: "step"}} Step
 * @typedef {{type: "resume"}} Resume
 * @typedef {{type: "stop"}} Stop
 * @typedef {{type: "decline", id: number, note: string}} Decline
 * @typedef {{type: "move", x: number, y: number}} Move
 * @typedef {{type: "button", x: number, y: number, button: Button, down: boolean, modifiers: Modifier[]}} Press
 * @typedef {{type: "wheel", x: number, y: number, across: number, down: number, modifiers: Modifier[]}} Wheel
 * @typedef {{type: "text", text: string}} Text
 * @typedef {{type: "chord", key: string, modifiers: Modifier[]}} Chord
 * @typedef {{type: "key", key: string, down: boolean, modifiers: Modifier[]}} Key
 * @typedef {{type: "blur"}} Blur
 * @typedef {{type: "paste", text: string, keys: boolean}} Paste
 * @typedef {{type: "copy"}} Copy
 * @typedef {{type: "upload", id: number, kind: "file" | "picture", name: string, size: number}} Upload
 * @typedef {{type: "cancel"}} Cancel
 * @typedef {{type: "answer", id: number, allow: boolean, session: boolean}} Answer
 *
 * @typedef {Ack | Point | Take | Release | Pause | Step | Resume | Stop | Decline | Answer} Request
 * @typedef {Move | Press | Wheel | Text | Chord | Key | Blur | Paste | Copy | Upload | Cancel} Hand
 * @typedef {Request | Hand} Message
 * @typedef {(message: Message) => void} Send
 */

/**
 * What the server sends in a turn.
 *
 * @typedef {object} Turn
 * @property {"turn"} type
 * @property {number} sequence to be acknowledged
 * @property {boolean} picture whether an update of the picture follows
 * @property {import("./grid.js").Summary[]} [desktops]
 * @property {import("./live.js").State} [state]
 * @property {import("./operations.js").Operation[]} [operations]
 * @property {import("./pointed.js").Found} [pointed]
 * @property {{error?: string, clipboard?: string}[]} [answers]
 * @property {import("./transfers.js").News} [upload]
 * @property {{size: number, at: number, data: string}} [copied]
 */

export {};
