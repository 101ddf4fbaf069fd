// Two loop nests beside each other, differences marked.

const MOST_LINES = 900;

/** The lines of two texts in pairs: [left or null, right or null]; equal lines stand together. */
function alignedLines(left, right) {
  const a = left.split("\n"), b = right.split("\n");
  const rows = a.length + 1, columns = b.length + 1;
  const common = new Uint16Array(rows * columns); // the longest common part of the rests
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) {
    common[i * columns + j] = a[i] === b[j] ? common[(i + 1) * columns + j + 1] + 1
      : Math.max(common[(i + 1) * columns + j], common[i * columns + j + 1]);
  }
  const pairs = [];
  let i = 0, j = 0, gone = [], come = [];
  const flush = () => {
    for (let n = 0; n < Math.max(gone.length, come.length); n++) pairs.push([gone[n] ?? null, come[n] ?? null]);
    gone = []; come = [];
  };
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { flush(); pairs.push([a[i++], b[j++]]); }
    else if (j >= b.length || i < a.length && common[(i + 1) * columns + j] >= common[i * columns + j + 1]) gone.push(a[i++]);
    else come.push(b[j++]);
  }
  flush();
  return pairs;
}

function nestsView(search) {
  const nests = search.nests || {};
  if (!nests.best && !nests.default) return null;
  if (!nests.best || !nests.default || nests.best === nests.default) {
    const text = nests.best || nests.default;
    return [el("h3", {}, nests.best && nests.default ? "The loop nest: the default is the best" : "The loop nest"), el("pre", {}, text)];
  }
  const cut = (text) => text.split("\n").slice(0, MOST_LINES).join("\n");
  const grid = el("div", {class: "nests", tabindex: 0, role: "group", "aria-label": "Loop nests of the default and the best schedule"},
    el("div", {class: "head"}, `Default, ${time(search.default_us)}`), el("div", {class: "head"}, `Best, ${time(search.best_us)}`));
  for (const [left, right] of alignedLines(cut(nests.default), cut(nests.best))) {
    const isSame = left === right;
    grid.append(el("div", {class: `code ${left === null ? "blank" : isSame ? "" : "removed"}`}, left ?? ""),
      el("div", {class: `code ${right === null ? "blank" : isSame ? "" : "added"}`}, right ?? ""));
  }
  return [el("h3", {}, "The loop nest by default, and the best"), grid,
    el("details", {}, el("summary", {}, "Both schedules"), el("h3", {}, "Default"), el("pre", {class: "wrap"}, search.default_schedule),
      el("h3", {}, "Best"), el("pre", {class: "wrap"}, search.best_schedule))];
}
