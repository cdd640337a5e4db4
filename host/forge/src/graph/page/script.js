"use strict";
// Search highlights tools; a click shows one tool with its edges. Without this script the page shows all tools.
const drawing = document.querySelector("svg");
// Edges of the chosen tool are drawn in front of the cards.
const front = drawing.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "g"));
const cards = [...drawing.querySelectorAll(".card")];
const edges = [...drawing.querySelectorAll(".edge")];
const sections = [...document.querySelectorAll("aside section")];
const search = document.querySelector("input[type=search]");
const found = document.querySelector("#found");
let hits = [];
let next = 0;
document.body.classList.add("live");

function choose(number) {
  const chosen = cards.find((card) => card.dataset.tool === number);
  drawing.classList.toggle("focused", Boolean(chosen));
  front.replaceChildren();
  const near = new Set();
  for (const edge of edges) {
    const ends = [edge.dataset.from, edge.dataset.to];
    const isNear = ends.includes(number);
    edge.classList.toggle("near", isNear);
    if (isNear) {
      ends.forEach((end) => near.add(end));
      front.append(edge.cloneNode());
    }
  }
  for (const card of cards) {
    card.classList.toggle("near", near.has(card.dataset.tool));
    card.classList.toggle("chosen", card === chosen);
  }
  for (const section of sections) section.classList.toggle("shown", section.id === (chosen ? "tool-" + number : "start"));
  document.querySelector("aside").scrollTop = 0;
}

function show(number) {
  clear();
  const card = cards.find((card) => card.dataset.tool === number);
  if (card) card.scrollIntoView({ block: "center", inline: "center" });
  choose(number);
}

function clear() {
  hits = [];
  drawing.classList.remove("searched");
  found.textContent = "";
}

function look() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return clear();
  choose("");
  hits = cards.filter((card) => words.every((word) => card.dataset.words.includes(word)));
  next = 0;
  drawing.classList.add("searched");
  for (const card of cards) card.classList.toggle("hit", hits.includes(card));
  found.textContent = hits.length + " of " + cards.length + " tools" + (hits.length ? "; Enter goes through them" : "");
}

search.addEventListener("input", look);
search.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && hits.length) {
    hits[next].scrollIntoView({ block: "center", inline: "center" });
    found.textContent = "tool " + (next + 1) + " of " + hits.length + " found";
    next = (next + 1) % hits.length;
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    search.value = "";
    clear();
    choose("");
    history.replaceState(null, "", location.pathname + location.search);
  }
});
addEventListener("hashchange", () => show(location.hash.replace("#tool-", "")));
document.addEventListener("click", (event) => {
  // A second click on the same tool changes no address.
  const link = event.target.closest("a");
  if (link && link.getAttribute("href") === location.hash) show(location.hash.replace("#tool-", ""));
});
if (location.hash) show(location.hash.replace("#tool-", ""));
else choose("");
