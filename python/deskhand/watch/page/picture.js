// The picture: pieces of what changed, drawn on a canvas. It has the desktop's own pixels.

/** @typedef {{x: number, y: number, width: number, height: number, image: ImageBitmap}} Piece */

/**
 * The pieces of an update, decoded.
 * @param {ArrayBuffer} data
 * @returns {Promise<{sequence: number, width: number, height: number, pieces: Piece[]}>}
 */
export async function decode(data) {
  const view = new DataView(data);
  const sequence = view.getUint32(0, true);
  const width = view.getUint16(4, true);
  const height = view.getUint16(6, true);
  const count = view.getUint16(8, true);
  let at = 10;
  const pieces = [];
  for (let index = 0; index < count; index += 1) {
    const [x, y, w, h] = [0, 2, 4, 6].map((offset) => view.getUint16(at + offset, true));
    const length = view.getUint32(at + 8, true);
    const bytes = new Uint8Array(data, at + 12, length);
    // On a slow line a piece may be JPEG, and comes again as PNG.
    const file = new Blob([bytes], { type: bytes[0] === 0xff ? "image/jpeg" : "image/png" });
    pieces.push(
      createImageBitmap(file, { colorSpaceConversion: "none", premultiplyAlpha: "none" }).then((image) => ({
        x, y, width: w, height: h, image,
      })),
    );
    at += 12 + length;
  }
  return { sequence, width, height, pieces: await Promise.all(pieces) };
}

/** A canvas that shows a desktop. */
export class Picture {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
  }

  /**
   * Draw an update; whether the size has changed.
   * @param {{width: number, height: number, pieces: Piece[]}} update
   */
  draw({ width, height, pieces }) {
    const resized = this.canvas.width !== width || this.canvas.height !== height;
    if (resized) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    for (const { x, y, image } of pieces) {
      this.context.drawImage(image, x, y);
      image.close();
    }
    return resized;
  }

  /** Show nothing. */
  clear() {
    this.context.fillRect(0, 0, this.canvas.width, this.canvas.height);
  }
}
