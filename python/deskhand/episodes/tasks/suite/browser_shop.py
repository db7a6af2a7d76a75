"""A small shop: a search, a cart, a checkout.

Every page looks the same at every moment, and every result can be read outside of the page.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from deskhand.actions import KeyPress, LeftClick
from deskhand.episodes.tasks.browser import Page, received, start_browser
from deskhand.episodes.tasks.suite._applications import prepare
from deskhand.episodes.tasks.suite._browsing import SEND, choose, click, compared, document, fill
from deskhand.episodes.tasks.task import Grade, Task, TaskLimits

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from deskhand.episodes.tasks.context import TaskContext

_KINDS = {
    "tea": ("Assam", "Darjeeling", "Earl Grey", "Genmaicha", "Lapsang", "Sencha", "Oolong", "Rooibos"),
    "jam": ("apricot", "blackcurrant", "cherry", "damson", "fig", "quince", "rhubarb", "strawberry"),
    "soap": ("almond", "cedar", "clove", "lavender", "lemon", "olive", "rosemary", "thyme"),
}
_SIZES = ("small", "large")
_STREETS = ("Alder Lane", "Bridge Street", "Chapel Row", "Dock Road", "Elm Court", "Foundry Hill")
_TOWNS = ("Brackley", "Corley", "Dunster", "Esham", "Farrow", "Gorring")
_SHIPPING = ("Collect in the shop", "Parcel", "Courier")

_SHOP = """
const cart = JSON.parse(localStorage.cart || "{}");
function keep() { localStorage.cart = JSON.stringify(cart); total(); }
function total() {
  const pieces = Object.values(cart).reduce((sum, count) => sum + count, 0);
  document.getElementById("incart").textContent = `Cart (${pieces})`;
}
"""

_SHELF = """
function show() {
  const words = search.value.trim().toLowerCase();
  const found = goods.filter(one => one.name.toLowerCase().includes(words));
  shelf.replaceChildren(...found.map(one => {
    const row = document.createElement("tr"), button = document.createElement("button");
    row.insertCell().textContent = one.name;
    const price = row.insertCell(); price.textContent = one.price.toFixed(2); price.className = "number";
    button.textContent = "Add"; button.id = one.id;
    button.onclick = () => { cart[one.id] = (cart[one.id] || 0) + 1; keep(); };
    row.insertCell().append(button);
    return row;
  }));
  hits.textContent = `${found.length} of ${goods.length}`;
}
finder.onsubmit = event => { event.preventDefault(); show(); };
show(); total();
"""

_CHECKOUT = """
for (const one of goods.filter(one => cart[one.id])) {
  const row = lines.insertRow();
  row.insertCell().textContent = one.name;
  const count = row.insertCell(), remove = document.createElement("button");
  count.textContent = cart[one.id]; count.className = "number";
  remove.textContent = "Remove";
  remove.onclick = () => { delete cart[one.id]; keep(); row.remove(); };
  row.insertCell().append(remove);
}
form.onsubmit = event => {
  event.preventDefault();
  const value = id => document.getElementById(id).value.trim();
  send("order", { goods: cart, street: value("street"), town: value("town"), shipping: value("shipping") })
    .then(() => { note.textContent = "Your order has arrived. Thank you."; });
};
total();
"""


class BrowserShop(Task):
    """Find two articles among forty-eight, put some of each in the cart, and order."""

    name: ClassVar[str] = "browser-shop"
    level: ClassVar[Literal[1, 2, 3]] = 3
    tags: ClassVar[tuple[str, ...]] = ("browser",)
    limits: ClassVar[TaskLimits] = TaskLimits(steps=40, seconds=420)
    programs: ClassVar[tuple[str, ...]] = ("chromium", "perl")

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        """The shop's goods, and the order: the cheaper size of one kind, and a named size of another."""
        goods: list[dict[str, Any]] = []
        # All prices differ, so that one of two sizes is always cheaper.
        prices = iter(random.sample(range(150, 1500), len(_SIZES) * sum(map(len, _KINDS.values()))))
        for kind, sorts in _KINDS.items():
            for sort in sorts:
                for size in _SIZES:
                    name = f"{sort.capitalize()} {kind}, {size}"
                    goods.append({"id": f"g{len(goods)}", "name": name, "price": next(prices) / 100})
        shelf = random.sample(goods, len(goods))
        first, second = random.sample(tuple(_KINDS), 2)
        one = random.choice(_KINDS[first]).capitalize() + f" {first}"
        other = random.choice(_KINDS[second]).capitalize() + f" {second}, {random.choice(_SIZES)}"
        return {
            "goods": shelf,
            "cheaper": {"name": one, "count": random.randrange(1, 4)},
            "exact": {"name": other, "count": random.randrange(1, 4)},
            "street": f"{random.choice(_STREETS)} {random.randrange(1, 99)}",
            "town": random.choice(_TOWNS),
            "shipping": random.choice(_SHIPPING),
        }

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """See `Task`."""
        cheaper, exact = parameters["cheaper"], parameters["exact"]
        return (
            f"Order in the shop that the browser shows: {cheaper['count']} × “{cheaper['name']}”, in the size "
            f"that costs less, and {exact['count']} × “{exact['name']}”. It is to go to {parameters['street']}, "
            f"{parameters['town']}; shipping: {parameters['shipping']}."
        )

    def setup(self, context: TaskContext) -> None:
        """See `Task`."""
        prepare(context)
        goods = f"const goods = {json.dumps(context.parameters['goods'])};\n"
        menu = "<nav><a id=shop href='/'>Shop</a> <a id=incart href='cart.html'>Cart (0)</a></nav>"
        shelf = f"""{menu}<h1>The corner shop</h1><form id=finder autocomplete=off><input type=text id=search>
        <button id=go>Search</button> <span id=hits></span></form>
        <table><thead><tr><th>Article</th><th>Price</th><th></th></tr></thead><tbody id=shelf></tbody></table>"""
        options = "".join(f"<option>{name}</option>" for name in ("choose…", *_SHIPPING))
        cart = f"""{menu}<h1>Your cart</h1><table><thead><tr><th>Article</th><th>Pieces</th><th></th></tr></thead>
        <tbody id=lines></tbody></table><form id=form autocomplete=off>
        <label for=street>Street and number</label><input type=text id=street>
        <label for=town>Town</label><input type=text id=town>
        <label for=shipping>Shipping</label><select id=shipping>{options}</select>
        <div><button id=order>Order</button></div></form><p class=note id=note></p>"""
        style = "td button { margin: 0; padding: 1px 12px; }"
        pages = {
            "": document("The corner shop", shelf, goods + _SHOP + _SHELF, style),
            "cart.html": document("Your cart", cart, goods + _SHOP + SEND + _CHECKOUT, style),
        }
        start_browser(context, pages)

    def evaluate(self, context: TaskContext) -> Grade:
        """See `Task`."""
        wanted = {name: context.parameters[name] for name in ("street", "town", "shipping")}
        return compared(
            received(context, "order"), {"goods": _cart(context.parameters), **wanted}, "the order that was sent"
        )

    def oracle(self, context: TaskContext) -> None:
        """See `Task`."""
        names = {one["id"]: one["name"] for one in context.parameters["goods"]}
        with Page(context) as page:
            for number, count in _cart(context.parameters).items():
                fill(context, page, "#search", names[number])
                context.desktop.perform(KeyPress(["Return"]))
                page.until("shelf.rows.length === 1")
                context.desktop.perform(*[LeftClick(page.centre(f"#{number}"))] * count)
                page.until(f"cart[{number!r}] === {count}")
            click(context, page, "#incart")
            page.until("document.title === 'Your cart' && document.readyState === 'complete'")
            for name in ("street", "town"):
                fill(context, page, f"#{name}", context.parameters[name])
            choose(context, page, "#shipping", context.parameters["shipping"])
            click(context, page, "#order")
            page.until("note.textContent !== ''")


def _cart(parameters: Mapping[str, Any]) -> dict[str, int]:
    """The order: the number of pieces of each article."""
    cheaper, exact = parameters["cheaper"], parameters["exact"]
    sizes = [one for one in parameters["goods"] if one["name"].startswith(f"{cheaper['name']},")]
    chosen = min(sizes, key=lambda one: float(one["price"]))
    named = next(one for one in parameters["goods"] if one["name"] == exact["name"])
    return {chosen["id"]: cheaper["count"], named["id"]: exact["count"]}
