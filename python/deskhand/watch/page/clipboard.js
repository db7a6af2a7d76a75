// Clipboards and files: what is pasted or dropped, as what is sent, and the picture that comes from the desktop's clipboard.

import { ask } from "./dialogs.js";
import { get, toast } from "./dom.js";

/** @typedef {import("./transfers.js").Item} Item */

const MOST_PIXELS = 40_000_000;

/**
 * Files as what is sent of them; folders are left out.
 * @param {DataTransfer} data of a drop
 * @returns {Item[]}
 */
export function dropped(data) {
  const folders = new Set();
  for (const item of data.items) {
    const entry = item.kind === "file" ? item.webkitGetAsEntry?.() : undefined;
    if (entry?.isDirectory) folders.add(entry.name);
  }
  for (const name of folders) toast(`${name} is a folder: send its files.`);
  return asFiles([...data.files].filter((file) => !folders.has(file.name)));
}

/**
 * @param {File[]} files
 * @returns {Item[]}
 */
export function asFiles(files) {
  return files.map((file) => ({ kind: "file", name: file.name, data: file }));
}

/**
 * A picture for the desktop's clipboard. What the browser cannot read as one goes as a file.
 * @param {File} file
 * @returns {Promise<Item>}
 */
export async function asPicture(file) {
  try {
    return { kind: "picture", name: "The picture", data: file.type === "image/png" ? file : await converted(file) };
  } catch {
    return { kind: "file", name: file.name, data: file };
  }
}

/**
 * A picture as a PNG file, which all applications take.
 * @param {Blob} file
 * @returns {Promise<Blob>}
 */
async function converted(file) {
  const image = await createImageBitmap(file);
  if (image.width * image.height > MOST_PIXELS) throw new RangeError("it is too large");
  const canvas = document.createElement("canvas");
  drawn(canvas, image);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new RangeError("it is too large"))), "image/png"),
  );
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {ImageBitmap} image
 */
function drawn(canvas, image) {
  canvas.width = image.width;
  canvas.height = image.height;
  canvas.getContext("2d")?.drawImage(image, 0, 0);
  image.close();
}

/** A picture that comes in pieces. */
export class Copied {
  constructor() {
    /** @type {Uint8Array<ArrayBuffer>} */
    this.data = new Uint8Array();
  }

  /**
   * The next piece; the whole picture with the last one.
   * @param {{size: number, at: number, data: string}} piece
   * @returns {Blob | undefined}
   */
  put({ size, at, data }) {
    if (at === 0) this.data = new Uint8Array(size);
    const piece = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
    this.data.set(piece, at);
    if (at + piece.length < size) return undefined;
    const whole = new Blob([this.data], { type: "image/png" });
    this.data = new Uint8Array();
    return whole;
  }
}

/**
 * Show a picture of the desktop's clipboard, to be copied or kept.
 * @param {Blob} picture a PNG file
 */
export async function offer(picture) {
  const canvas = /** @type {HTMLCanvasElement} */ (get("copied-picture"));
  try {
    const image = await createImageBitmap(picture);
    get("copied-size").textContent = `${image.width} × ${image.height}`;
    drawn(canvas, image);
  } catch {
    toast("The picture on the clipboard of the desktop is broken.");
    return;
  }
  const chosen = await ask("picture-dialog");
  if (chosen === "save") save(picture);
  if (chosen !== "copy") return;
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": picture })]);
    toast("Copied.", "note");
  } catch {
    toast("This browser does not let the page copy a picture: it is saved as a file instead.");
    save(picture);
  }
}

/** @param {Blob} picture */
function save(picture) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(picture);
  link.download = "clipboard.png";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
