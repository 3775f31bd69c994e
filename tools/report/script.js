"use strict";
(() => {
  // Colours for code, put in when it is first looked at. Text nodes only: nothing is parsed as HTML.
  const languages = {
    mlir: [
      ["c-note", /\/\/.*/y], ["c-text", /"[^"\n]*"(?=\()|"[^"\n]*"/y],
      ["c-name", /[%@#^][\w$.-]+(?::\d+)?/y],
      ["c-type", /!?\b(?:tensor|memref|vector|index|none|f(?:16|32|64)|bf16|[su]?i\d+|profuse\.tensor)\b(?:<[^<>\n]*>)?/y],
      ["c-op", /\b(?:func\.func|[a-z_]+\.[a-z_.]+|return|module|private)\b/y],
    ],
    llvm: [
      ["c-note", /;.*/y], ["c-text", /c?"[^"\n]*"/y], ["c-name", /[%@!][\w$.-]+/y],
      ["c-type", /\b(?:i\d+|float|double|half|ptr|void)\b|<\d+ x \w+>/y],
      ["c-op", /(?<==\s|^\s+)[a-z]+\b/my],
    ],
    asm: [
      ["c-note", /#.*/y], ["c-name", /^[\w.$]+:/my], ["c-type", /(?<=^\s*)\.\w.*/my],
      ["c-op", /(?<=^\s+)[a-z]\w*/my], ["c-name", /%\w+/y], ["c-text", /\$-?\w+/y],
    ],
  };
  const paint = (box) => {
    const rules = languages[box.dataset.language], text = box.textContent;
    if (!rules || box.dataset.painted || text.length > 300000) return;
    box.dataset.painted = "yes";
    const made = document.createDocumentFragment();
    let at = 0, plain = 0;
    while (at < text.length) {
      let found = null;
      for (const [name, rule] of rules) {
        rule.lastIndex = at;
        const match = rule.exec(text);
        if (match && match[0]) { found = [name, match[0]]; break; }
      }
      if (!found) { const word = /\w+|\s+|./sy; word.lastIndex = at; at += word.exec(text)[0].length; continue; }
      made.append(text.slice(plain, at));
      const span = document.createElement("span");
      [span.className, span.textContent] = found;
      made.append(span);
      plain = at += found[1].length;
    }
    made.append(text.slice(plain));
    box.replaceChildren(made);
  };
  const paintShown = (within) => {
    for (const box of within.querySelectorAll("pre.ir")) if (box.offsetParent) paint(box);
  };
  for (const details of document.querySelectorAll("details")) {
    details.addEventListener("toggle", () => { if (details.open) paintShown(details); });
  }
  paintShown(document);

  // A link into something folded opens it.
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  };
  addEventListener("hashchange", reveal);
  reveal();

  // Events by words and level.
  const form = document.querySelector(".filter");
  if (form) {
    const rows = [...document.querySelectorAll(".events tbody tr")];
    const apply = () => {
      const words = form.text.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = +row.dataset.level < +form.level.value || !words.every((w) => text.includes(w));
        shown += !row.hidden;
      }
      form.querySelector("output").textContent = `${shown} of ${rows.length}`;
    };
    form.hidden = false;
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    apply();
  }

  // The section at hand is marked in the navigation.
  const links = new Map();
  for (const link of document.querySelectorAll("nav li a")) links.set(link.hash.slice(1), link);
  const sections = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  const mark = () => {
    const line = innerHeight * 0.3;
    const past = sections.filter((s) => s.getBoundingClientRect().top <= line);
    const here = scrollY + innerHeight >= document.documentElement.scrollHeight - 2
      ? sections.at(-1) : past.at(-1) || sections[0];
    for (const [id, link] of links) {
      if (here && id === here.id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };
  let waiting = false;
  addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; mark(); });
  }, { passive: true });
  mark();
})();
