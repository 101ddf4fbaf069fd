// The theme, the keys, the bar at the top.

const THEMES = ["auto", "light", "dark"];
const KEYS = [
  ["1 … 9", "go to a part of the page"], ["j, k", "next and previous workload"], ["t", "light, dark, or as the system"],
  ["c", "copy the command"], ["p", "print"], ["?", "this list"], ["Esc", "close it"],
];

function theme() {
  return document.documentElement.dataset.theme || "auto";
}

function nextTheme() {
  const next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length];
  if (next === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  const button = document.getElementById("theme");
  button.textContent = `Theme: ${next}`;
  say(`theme: ${next}`);
}

function helpDialog() {
  const dialog = el("dialog", {id: "help", "aria-label": "Keys"}, el("h2", {}, "Keys"),
    el("table", {}, KEYS.map(([key, text]) => el("tr", {}, el("td", {}, el("kbd", {}, key)), el("td", {}, text)))),
    el("div", {class: "bar", style: {marginBottom: 0}}, el("button", {type: "button", onclick: () => dialog.close()}, "Close")));
  return dialog;
}

function topBar(report, sections) {
  return el("div", {},
    el("span", {class: "name", title: report.name}, report.name),
    el("nav", {"aria-label": "Parts of the page"}, sections.map(([id, text]) => el("a", {href: `#${id}`}, text))),
    el("button", {type: "button", id: "theme", onclick: nextTheme}, `Theme: ${theme()}`),
    el("button", {type: "button", id: "print", onclick: () => window.print()}, "Print"),
    el("button", {type: "button", id: "keys", "aria-label": "Keys", onclick: () => document.getElementById("help").showModal()}, "?"));
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  const help = document.getElementById("help");
  if (help.open) return;
  const links = [...document.querySelectorAll("#top nav a")];
  if (/^[1-9]$/.test(event.key) && links[event.key - 1]) links[event.key - 1].click();
  else if (event.key === "j" && searches.step) searches.step(1);
  else if (event.key === "k" && searches.step) searches.step(-1);
  else if (event.key === "t") nextTheme();
  else if (event.key === "p") window.print();
  else if (event.key === "c") document.querySelector("#conditions .copy")?.click();
  else if (event.key === "?") help.showModal();
}
