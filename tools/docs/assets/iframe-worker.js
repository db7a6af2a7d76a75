// Browsers start no worker from a page that was opened as a file: here its script runs in a frame instead.
"use strict";
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inside = frame.contentWindow;
      const load = (script) => new Promise((resolve, reject) => {
        const element = inside.document.createElement("script");
        element.src = script;
        element.onload = resolve;
        element.onerror = () => reject(new Error("cannot load " + script));
        inside.document.body.appendChild(element);
      });
      inside.importScripts = (...scripts) => scripts.reduce((before, script) => before.then(() => load(script)), Promise.resolve());
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", {data: structuredClone(data)});
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      this.frame = frame;
      this.ready = load(url);
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", {data: structuredClone(data)})));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
