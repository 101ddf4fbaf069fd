// From untuned to tuned: a waterfall of the parts of the compiler.

const PART_COLUMNS = [
  {title: "part", value: (row) => row.part},
  {title: "what it does", value: (row) => row.does},
  {title: "time_us", value: (row) => row.time_us, isNumber: true},
  {title: "least_us", value: (row) => row.least_us, isNumber: true},
  {title: "most_us", value: (row) => row.most_us, isNumber: true},
];

function partsSection(report) {
  const parts = report.parts && report.parts.parts;
  if (!parts) return null;
  const missing = report.parts.missing || [];
  const left = `Not measured: ${missing.map((each) => `${each.part} (${each.reason})`).join(", ")}.`;
  if (parts.length < 2) return missing.length ? section("parts", "From untuned to tuned", `${left} A report of its own has more time: tensorwright report MODEL -o FILE.html`) : null;
  const most = Math.max(...parts.map((part) => part.most_us));
  const at = (us) => `${100 * us / most}%`;
  const rows = [];
  parts.forEach((part, number) => {
    const before = number ? parts[number - 1].time_us : part.time_us;
    const change = before - part.time_us;
    const isFirst = number === 0;
    // a change within the ranges of both is no change that anybody could name
    const isSure = isFirst || part.most_us < parts[number - 1].least_us || part.least_us > parts[number - 1].most_us;
    rows.push(
      el("div", {class: "part"}, isFirst ? "start" : part.part, el("span", {class: "does"}, part.does)),
      el("div", {class: "track", role: "img", "aria-label": `${part.part}: ${time(part.time_us)}`},
        isFirst
          ? el("div", {class: "block total", style: {left: 0, width: at(part.time_us)}})
          : [el("div", {class: "block total", style: {left: 0, width: at(Math.min(before, part.time_us)), opacity: 0.35}}),
            el("div", {class: `block ${change >= 0 ? "gain" : "loss"}`, style: {
              left: at(Math.min(before, part.time_us)), width: at(Math.abs(change)), opacity: isSure ? 1 : 0.45}})],
        el("div", {class: "spread", title: `${time(part.least_us)} to ${time(part.most_us)}`,
          style: {left: at(part.least_us), width: at(Math.max(part.most_us - part.least_us, most / 500))}})),
      el("div", {class: "change"}, el("b", {}, time(part.time_us)), " ",
        isFirst ? "" : !isSure ? el("span", {class: "soft"}, "within the noise")
          : el("span", {class: change >= 0 ? "good" : "bad"}, change >= 0 ? `${times(before / part.time_us)} faster` : `${times(part.time_us / before)} slower`)));
  });
  const first = parts[0], last = parts[parts.length - 1];
  return section("parts", "From untuned to tuned",
    `Each row is the network with one more part of the compiler at work, ${digits(first.time_us / last.time_us)} times as fast in all. All rows were run in turns; the dark line is the range of the faster half of the turns.`,
    el("div", {class: "bar"}, copyButton(PART_COLUMNS, parts, "parts")),
    el("div", {class: "fall card"}, rows),
    missing.length > 0 && el("p", {class: "soft", style: {marginTop: "10px"}},
      `${left} What it gains is part of the next row.`));
}
