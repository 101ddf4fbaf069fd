// The search of each workload.

const WORKLOAD_COLUMNS = [
  {title: "workload", value: (row) => row.name, text: (row) => [row.name, " ", el("span", {class: "soft"}, row.shape || ""), " ", el("span", {class: "soft mono"}, row.key.slice(0, 6))], isName: true},
  {title: "weight", value: (row) => row.weight, text: (row) => digits(row.weight), isNumber: true},
  {title: "trials", value: (row) => row.trial_count ?? row.trials.length, isNumber: true},
  {title: "default_us", value: (row) => row.default_us, text: (row) => time(row.default_us), isNumber: true},
  {title: "best_us", value: (row) => row.best_us, text: (row) => time(row.best_us), isNumber: true},
  {title: "roofline_us", value: (row) => row.roofline_us, text: (row) => time(row.roofline_us), isNumber: true},
  {title: "elsewhere_us", value: (row) => row.rival_us, text: (row) => time(row.rival_us), isNumber: true},
  {title: "speed_up", value: (row) => row.compared ? row.compared.speed_up : null, text: (row) => speedUp(row.compared, row.is_searched), isNumber: true},
  {title: "range", value: (row) => row.compared ? range(row.compared.least, row.compared.most) : "", text: (row) => row.compared && row.is_searched !== false && !row.compared.is_same ? range(row.compared.least, row.compared.most) : "", isNumber: true},
];
const TRIAL_COLUMNS = ["number", "at_s", "status", "time_us", "predicted_us", "round"].map((name) => ({title: name, value: (row) => row[name]}));
const FEW = 12;
const searches = {};

function speedUp(compared, isSearched) {
  if (isSearched === false) return "not searched";
  if (!compared) return "-";
  if (compared.is_same) return "same";
  return `${compared.is_sure ? "" : "~"}${times(compared.speed_up)}`;
}

/** Show the search of a workload. */
function chooseWorkload(key) {
  searches.key = key;
  if (searches.show) searches.show();
}

function workloadsSection(report) {
  const rows = report.workloads;
  if (!rows.length) return null;
  if (!rows.some((row) => row.key === searches.key)) searches.key = rows[0].key;
  const list = el("div", {}), detail = el("div", {id: "search"}), controls = el("div", {class: "bar"});
  searches.step = (way) => {
    const at = rows.findIndex((row) => row.key === searches.key);
    const next = rows[Math.max(0, Math.min(rows.length - 1, at + way))];
    if (next.key !== searches.key) { chooseWorkload(next.key); say(next.name); }
  };
  searches.show = () => {
    const at = rows.findIndex((row) => row.key === searches.key);
    const isShort = rows.length > FEW && !searches.isAll;
    const shown = isShort ? rows.filter((row, number) => number < FEW - 2 || number === at) : rows;
    list.replaceChildren(table(WORKLOAD_COLUMNS, shown, {
      caption: "Workloads", choose: (row) => chooseWorkload(row.key), isChosen: (row) => row.key === searches.key}),
    isShort ? el("button", {type: "button", class: "no-print", style: {marginTop: "10px"}, onclick: () => { searches.isAll = true; searches.show(); }}, `Show all ${rows.length}`) : "");
    detail.replaceChildren(...searchDetail(rows[at], report));
  };
  controls.append(copyButton(WORKLOAD_COLUMNS, rows, "workloads"));
  searches.show();
  return section("workloads", "The search of each workload",
    report.live ? "The best time of each workload so far. Times on record come from different moments."
      : "A workload is a part of the network that is one kernel. Its weight is how often a run calls it; of a network with open sizes, times the weight of its point, so that each point counts the same. Its times and its speed-up come from turns of the untuned and the tuned program, or else its times from records; ~ marks a speed-up that is not larger than the differences between turns. elsewhere is the workload alone in ONNX Runtime, the fastest call.",
    controls, list, detail);
}

function searchDetail(search, report) {
  const chart = el("div", {}, bestChart(search, Boolean(searches.isBySeconds)));
  const failed = search.failed ? `; ${search.failed} failed` : "";
  return [
    el("div", {class: "bar", style: {marginTop: "24px"}}, el("h3", {style: {margin: 0}}, search.name), el("span", {class: "soft mono"}, search.key),
      el("span", {class: "soft"}, `${count(search.trial_count ?? search.trials.length, "trial")}${failed}`),
      el("span", {class: "push"}), copyButton(TRIAL_COLUMNS, search.trials, "trials")),
    el("div", {class: "search"},
      el("div", {class: "card"}, choices("Against what", [[false, "By trials"], [true, "By seconds"]], Boolean(searches.isBySeconds), (value) => {
        searches.isBySeconds = value;
        chart.replaceChildren(bestChart(search, value));
      }), chart),
      !report.live && el("div", {class: "card"}, el("h3", {style: {margin: "4px 0 12px"}}, "Predicted and measured"), predictedChart(search))),
    search.program && el("details", {}, el("summary", {}, "The program"), el("pre", {}, search.program)),
    nestsView(search),
    !report.live && report.command && el("p", {class: "soft no-print"}, "Its machine code: ", el("code", {}, `tensorwright inspect MODEL --what asm --workload ${search.key}`)),
  ].flat().filter(Boolean);
}
