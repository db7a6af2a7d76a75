// What the page asks its viewer.

import { get } from "./dom.js";

/**
 * Show a dialog, and return the value of the button that closed it; empty if it was cancelled.
 * @param {string} id
 * @returns {Promise<string>}
 */
export function ask(id) {
  const dialog = /** @type {HTMLDialogElement} */ (get(id));
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "cancel" ? "" : dialog.returnValue), { once: true });
  });
}

/**
 * A text field of a dialog.
 * @param {string} id
 */
export function field(id) {
  return /** @type {HTMLTextAreaElement} */ (get(id));
}

/**
 * A check box of a dialog.
 * @param {string} id
 */
export function box(id) {
  return /** @type {HTMLInputElement} */ (get(id));
}
