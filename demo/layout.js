// Tells the demo where on the screen this page's elements are, so that it need not know how any browser lays out anything.
"use strict";
function tell() {
  // All of the browser's own furniture is above the page: no borders, no side bar, no status bar.
  const left = window.screenX + (window.outerWidth - window.innerWidth) / 2;
  const top = window.screenY + (window.outerHeight - window.innerHeight);
  const rects = {};
  for (const element of document.querySelectorAll("[id]")) {
    const box = element.getBoundingClientRect();
    rects[element.id] = [left + box.x, top + box.y, box.width, box.height];
  }
  fetch("layout", { method: "POST", body: JSON.stringify({ page: document.title, rects }) });
}
// Two animation frames after the load it has been painted, too. A bar that the browser opens or closes resizes the page.
window.addEventListener("load", () => requestAnimationFrame(() => requestAnimationFrame(tell)));
window.addEventListener("resize", tell);
