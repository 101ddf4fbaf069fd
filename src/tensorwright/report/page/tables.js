// Tables whose content can be copied as CSV.

/**
 * A table. columns: [{title, value(row), text(row), isNumber}], value is what a copy gets.
 * options: caption, choose(row) for rows that can be chosen, isChosen(row).
 */
function table(columns, rows, options = {}) {
  const body = el("tbody", {});
  for (const row of rows) {
    const choose = options.choose && (() => options.choose(row));
    body.append(el("tr", {
      tabindex: choose ? 0 : null,
      class: options.isChosen && options.isChosen(row) ? "chosen" : null,
      "aria-selected": options.isChosen ? String(options.isChosen(row)) : null,
      onclick: choose || (() => {}),
      onkeydown: (event) => { if (choose && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); choose(); } },
    }, columns.map((column) => el("td", {class: column.isNumber ? "number" : column.isName ? "name" : null},
      column.text ? column.text(row) : String(column.value(row) ?? "-")))));
  }
  return el("div", {class: "scroll"}, el("table", {"aria-label": options.caption},
    el("thead", {}, el("tr", {}, columns.map((column) =>
      el("th", {scope: "col", class: column.isNumber ? "number" : null}, shownTitle(column.title))))), body));
}

/** The head of a column: a copy says the unit there, the page beside each number. */
const shownTitle = (title) => title.replace(/_us$/, "").replace("gflops_per_s", "GFLOP/s").replace("gbytes_per_s", "GB/s").replaceAll("_", " ");

/** A button that copies rows as CSV: the header first, numbers as they are in the data. */
function copyButton(columns, rows, name, label = "Copy CSV") {
  return el("button", {
    type: "button", class: "no-print copy",
    onclick: async () => say(await copyText(toCsv(columns, rows)) ? `${name}: ${count(rows.length, "row")} copied as CSV` : "the browser does not let the page copy"),
  }, label);
}

function toCsv(columns, rows) {
  const lines = [columns.map((column) => cell(column.title))];
  for (const row of rows) lines.push(columns.map((column) => cell(column.value(row))));
  return lines.map((line) => line.join(",")).join("\r\n") + "\r\n";
}

/** A cell of CSV. A spreadsheet would run what begins like a formula: that gets a quote in front. */
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Copy; files on the disk may lack the new way, so the old one is tried, too. */
async function copyText(text) {
  copyText.last = text;
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = el("textarea", {style: {position: "fixed", opacity: 0}});
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    return isCopied;
  }
}
