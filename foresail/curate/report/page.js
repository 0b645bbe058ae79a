"use strict";
const kind = document.getElementById("kind");
const words = document.getElementById("words");
const number = document.getElementById("number");
const cards = [...document.querySelectorAll("article[data-kind]")];
const contents = cards.map((card) => card.textContent.toLowerCase());

function filter() {
  const searched = words.value.toLowerCase();
  let shown = 0;
  cards.forEach((card, place) => {
    const fits = (!kind.value || card.dataset.kind === kind.value) && contents[place].includes(searched);
    card.hidden = !fits;
    shown += fits;
  });
  number.textContent = `${shown} of ${cards.length}`;
}

kind.addEventListener("change", filter);
words.addEventListener("input", filter);
for (const button of document.querySelectorAll("button[data-show]")) {
  button.addEventListener("click", () => {
    kind.value = button.dataset.show;
    words.value = "";
    filter();
    document.getElementById("examples").scrollIntoView();
  });
}
filter();
