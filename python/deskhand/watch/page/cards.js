// What waits for a person: questions of the policy, requests for help, and what a pause holds.

import { button, get, make } from "./dom.js";

/** @typedef {import("./live.js").State} State */

export class Cards {
  /**
   * @param {import("./messages.js").Send} send
   * @param {() => void} take asks whether to take control
   */
  constructor(send, take) {
    this.send = send;
    this.take = take;
    this.place = get("waiting");
    /** @type {Map<string, {content: string, card: HTMLElement}>} */
    this.cards = new Map();
  }

  /** Show none. */
  clear() {
    this.cards.clear();
    this.place.replaceChildren();
  }

  /**
   * Show what waits now. A card that has not changed stays: a person may be about to press one of its buttons.
   * @param {State} state
   */
  show(state) {
    const mine = Boolean(state.holder?.mine);
    const answers = state.scopes.includes("approve");
    const controls = state.scopes.includes("control");
    const { paused, waiting } = state;
    /** @type {[string, unknown, () => HTMLElement][]} */
    const wanted = [];
    for (const each of state.questions) wanted.push([`question ${each.id}`, [each, answers], () => this.question(each, answers)]);
    for (const each of state.requests) {
      wanted.push([`request ${each.id}`, [each, controls, mine], () => this.request(each, controls, mine)]);
    }
    if (paused) wanted.push(["pause", [paused, waiting], () => pause(paused.by, waiting)]);
    const names = new Set(wanted.map(([name]) => name));
    for (const [name, { card }] of this.cards) {
      if (names.has(name)) continue;
      card.remove();
      this.cards.delete(name);
    }
    wanted.forEach(([name, about, make], index) => {
      const content = JSON.stringify(about);
      const known = this.cards.get(name);
      if (known?.content === content && known.card === this.place.children[index]) return;
      const card = known?.content === content ? known.card : make();
      if (known && known.card !== card) known.card.remove();
      this.place.insertBefore(card, this.place.children[index] ?? null);
      this.cards.set(name, { content, card });
    });
  }

  /**
   * @param {State["requests"][number]} request
   * @param {boolean} controls whether the viewer may take control
   * @param {boolean} mine whether the viewer has it
   */
  request(request, controls, mine) {
    const card = make("section", "card request", make("h3", "", "The agent asks for help"), make("p", "", request.reason));
    if (!controls) return card;
    const take = button(mine ? "Hand back" : "Take control", "primary", () => this.take());
    const decline = button("Decline", "", () => this.send({ type: "decline", id: request.id, note: "" }));
    card.append(make("div", "choices", take, decline));
    return card;
  }

  /**
   * @param {State["questions"][number]} question
   * @param {boolean} mayAnswer
   */
  question(question, mayAnswer) {
    const card = make("section", "card question");
    card.setAttribute("aria-label", "A question of the policy");
    card.append(make("h3", "", `${question.asks || "The agent"} wants: ${question.class}`));
    const details = make("dl", "details");
    for (const [name, value] of question.details) details.append(make("dt", "", name), make("dd", "", value));
    if (question.window !== null) details.append(make("dt", "", "window"), make("dd", "", question.window));
    if (question.desktop) details.append(make("dt", "", "desktop"), make("dd", "", question.desktop));
    card.append(details);
    const answer = (/** @type {boolean} */ allow, /** @type {boolean} */ session) => () =>
      this.send({ type: "answer", id: question.id, allow, session });
    if (mayAnswer) {
      const choices = make("div", "choices", button("Allow once", "primary", answer(true, false)));
      if (question.repeatable) choices.append(button("Allow for this session", "", answer(true, true)));
      choices.append(button("Deny", "danger", answer(false, false)));
      card.append(choices);
    } else card.append(make("p", "hint", "Your link is not for answering."));
    const until = new Date(question.until * 1000).toLocaleTimeString();
    card.append(make("p", "hint", `Without an answer until ${until} it is denied.`));
    return card;
  }
}

/**
 * @param {string} by
 * @param {string[]} waiting the operations that wait
 */
function pause(by, waiting) {
  const list = make("ul", "", ...waiting.map((each) => make("li", "", each)));
  const text = waiting.length ? "These operations wait:" : "Nothing waits yet.";
  return make("section", "card", make("h3", "", `Paused by ${by}`), make("p", "", text), list);
}
