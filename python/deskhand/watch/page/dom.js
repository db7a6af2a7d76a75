// Elements of the page. Texts are only ever set as texts, so that nothing untrusted is read as markup.

/**
 * The element of the page with this id.
 * @template {Element} [T=HTMLElement]
 * @param {string} id
 * @returns {T}
 */
export function get(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`there is no element ${id}`);
  return /** @type {T} */ (/** @type {unknown} */ (found));
}

/**
 * A new element.
 * @param {string} tag
 * @param {string} [className]
 * @param {...(Node | string)} children
 * @returns {HTMLElement}
 */
export function make(tag, className = "", ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

/**
 * A new button.
 * @param {string} text
 * @param {string} className
 * @param {() => void} press
 * @returns {HTMLButtonElement}
 */
export function button(text, className, press) {
  const made = /** @type {HTMLButtonElement} */ (make("button", className, text));
  made.type = "button";
  made.addEventListener("click", press);
  return made;
}

/**
 * A new element of a drawing.
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @returns {SVGElement}
 */
export function draw(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}

/**
 * Tell the viewer something that goes away by itself.
 * @param {string} text
 * @param {"error" | "note"} [kind]
 */
export function toast(text, kind = "error") {
  const place = get("toasts");
  const message = make("div", `toast ${kind}`, make("span", "", text));
  message.append(button("×", "quiet", () => message.remove()));
  message.lastElementChild?.setAttribute("aria-label", "Close this message");
  // The same once more is not another one.
  if (place.lastElementChild?.firstElementChild?.textContent === text) place.lastElementChild.remove();
  place.append(message);
  while (place.children.length > 4) place.firstElementChild?.remove();
  setTimeout(() => message.remove(), kind === "error" ? 12000 : 5000);
}

/**
 * The time of day.
 * @param {number} seconds since 1970
 */
export function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}
