// The graph before and after, the rules on the way, their gains and their proofs.

const RULE_COLUMNS = [
  {title: "rule", value: (row) => row.name, isName: true},
  {title: "times", value: (row) => row.count, isNumber: true},
  {title: "before_us", value: (row) => row.before_us, isNumber: true},
  {title: "after_us", value: (row) => row.time_us, isNumber: true},
  {title: "gain_us", value: (row) => row.gain_us, isNumber: true},
  {title: "noise_us", value: (row) => row.noise_us, isNumber: true},
];
const NODE_COLUMNS = [
  {title: "graph", value: (row) => row.graph},
  {title: "tensor", value: (row) => row.name},
  {title: "operator", value: (row) => row.operator},
  {title: "type", value: (row) => row.type},
  {title: "attributes", value: (row) => row.attributes},
  {title: "rule", value: (row) => row.rule_name || ""},
];
const CONTEXT = 2; // unchanged operators that are shown beside a changed one
const LANE = 11, ROW = 24, MOST_LANES = 14;

function graphsSection(report) {
  const graphs = report.graphs;
  if (!graphs || !graphs.before) return null;
  const rules = graphs.rules || [];
  const isChanged = Boolean(graphs.after);
  const proofs = rules.map((rule, number) => ruleCard(rule, number));
  const chooseRule = (number) => {
    proofs.forEach((card, other) => {
      card.classList.toggle("chosen", other === number);
      if (other === number) { card.open = true; card.scrollIntoView({block: "nearest"}); }
    });
  };
  const lists = el("div", {class: isChanged ? "graphs" : "graphs one"});
  const state = {isAll: false};
  const show = () => lists.replaceChildren(
    rails("before", graphs.before, "removed", state.isAll, chooseRule, isChanged),
    ...(isChanged ? [rails("after", graphs.after, "added", state.isAll, chooseRule, isChanged)] : []));
  show();
  const named = (name, rows) => rows.map((row) => ({...row, graph: name, rule_name: row.rule === undefined ? "" : rules[row.rule].name}));
  const nodes = [...named("before", graphs.before), ...named("after", graphs.after || [])];
  const why = (report.missing || {}).gains;
  return section("graph", "The graph",
    isChanged
      ? `${count(graphs.before.length, "operator")} became ${graphs.after.length}. A marked operator is one that a rule has removed or made: press it for the rule, what it gained, and why it holds.`
      : `${count(graphs.before.length, "operator")}; no graph that rules make was faster.`,
    el("div", {class: "bar"},
      choices("Which operators are shown", [[false, isChanged ? "Changes" : "Shortened"], [true, "All operators"]], false, (value) => { state.isAll = value; show(); }),
      copyButton(NODE_COLUMNS, nodes, "operators", "Copy operators"), rules.length > 0 && copyButton(RULE_COLUMNS, rules, "rules", "Copy rules")),
    lists,
    rules.length > 0 && el("h3", {}, "Rules, in the order in which they were applied"),
    rules.length > 0 && el("p", {class: "soft"}, why ? `Their gains were not measured: ${why}.`
      : "The graph after each rule ran in turns with the one before, untuned; the gain is the difference. Rules that only make way for the next gain nothing by themselves."),
    proofs);
}

function ruleCard(rule, number) {
  const isMeasured = isNumber(rule.gain_us);
  const isSure = isMeasured && Math.abs(rule.gain_us) > rule.noise_us;
  const gain = !isMeasured ? "not measured" : isSure ? `${time(rule.gain_us)} (${percent(rule.gain_us / rule.before_us)})`
    : `${time(rule.gain_us)}, within the noise of ${time(rule.noise_us)}`;
  return el("details", {class: "rule", id: `rule-${number}`},
    el("summary", {}, el("b", {}, rule.name), el("span", {class: "soft"}, `applied ${count(rule.count, "time")}`),
      el("span", {class: `push ${isSure ? rule.gain_us > 0 ? "good" : "bad" : "soft"}`}, gain)),
    el("div", {},
      el("h3", {}, "What it says"), el("pre", {class: "wrap"}, rule.texts.join("\n")),
      el("h3", {}, "Why it holds"), el("pre", {class: "wrap proof"}, (rule.proofs || ["its proof is not here"]).join("\n\n")),
      rule.places && rule.places.length > 0 && [
        el("h3", {}, `Where it was applied${rule.places.length < rule.count ? `, the first ${rule.places.length} of ${rule.count}` : ""}`),
        el("pre", {class: "wrap"}, rule.places.map((place) => place.join("\n")).join("\n\n"))]));
}

/** The lanes of a graph: for each row its own lane, what passes by, and what comes in. */
function lanesOf(rows) {
  const last = rows.map((_, number) => number);
  rows.forEach((row, number) => row.reads.forEach((read) => { if (typeof read === "number") last[read] = Math.max(last[read], number); }));
  const lanes = []; // of each lane the row whose tensor lies in it, or -1
  return rows.map((row, number) => {
    const above = lanes.slice();
    const reads = new Set(row.reads.filter((read) => typeof read === "number"));
    const from = [];
    lanes.forEach((held, lane) => { if (reads.has(held)) from.push(lane); });
    lanes.forEach((held, lane) => { if (held >= 0 && last[held] <= number) lanes[lane] = -1; });
    let own = lanes.indexOf(-1);
    if (own < 0) own = lanes.length;
    lanes[own] = last[number] > number ? number : -1;
    return {own, from, above, below: lanes.slice(), isRead: last[number] > number};
  });
}

function railSvg(at, width, isNode) {
  const x = (lane) => 8 + LANE * Math.min(lane, MOST_LANES);
  const shapes = [];
  at.above.forEach((held, lane) => {
    if (held >= 0 && at.below[lane] === held) shapes.push(draw("path", {class: "rail", d: `M${x(lane)} 0V${ROW}`}));
  });
  if (isNode) {
    for (const lane of at.from) shapes.push(draw("path", {class: "rail", d: `M${x(lane)} 0C${x(lane)} ${ROW / 2} ${x(at.own)} 0 ${x(at.own)} ${ROW / 2}`}));
    if (at.isRead) shapes.push(draw("path", {class: "rail", d: `M${x(at.own)} ${ROW / 2}V${ROW}`}));
    shapes.push(draw("circle", {class: "dot", cx: x(at.own), cy: ROW / 2, r: 3.5}));
  }
  return draw("svg", {width, height: ROW, "aria-hidden": "true"}, shapes);
}

function rails(name, rows, mark, isAll, chooseRule, isChanged) {
  const lanes = lanesOf(rows);
  const most = Math.min(MOST_LANES, Math.max(...lanes.map((at) => Math.max(at.own, at.above.length - 1, 0))));
  const width = 16 + LANE * most;
  const isShown = rows.map((row, number) => {
    if (isAll || rows.length <= 14) return true;
    if (!isChanged) return number < 7 || number >= rows.length - 3;
    for (let other = Math.max(0, number - CONTEXT); other <= number + CONTEXT; other++) if (rows[other] && rows[other].rule !== undefined) return true;
    return number === 0 || number === rows.length - 1;
  });
  const list = el("div", {class: "rails card", role: "group", "aria-label": `Graph ${name}`, tabindex: 0});
  const buttons = new Map();
  const light = (number) => {
    for (const button of buttons.values()) button.classList.remove("near", "chosen");
    if (number === null) return;
    buttons.get(number).classList.add("chosen");
    rows[number].reads.forEach((read) => buttons.get(read)?.classList.add("near"));
    rows.forEach((row, other) => { if (row.reads.includes(number)) buttons.get(other)?.classList.add("near"); });
  };
  const node = (row, number) => {
    const button = el("button", {
      type: "button", class: `node ${row.rule === undefined ? "" : mark}`,
      title: [`${row.name} = ${row.operator}(${row.attributes})`, row.type].join("\n"),
      "aria-label": `${row.operator} ${row.name}, ${row.type}${row.rule === undefined ? "" : `, ${mark} by rule ${row.rule + 1}`}`,
      onfocus: () => light(number), onmouseenter: () => light(number),
      onclick: () => { light(number); if (row.rule !== undefined) chooseRule(row.rule); },
    }, railSvg(lanes[number], width, true), el("span", {class: "operator"}, row.operator),
    el("span", {class: "type"}, row.type), el("span", {class: "tensor"}, row.name));
    buttons.set(number, button);
    return button;
  };
  for (let number = 0; number < rows.length; number++) {
    if (isShown[number]) { list.append(node(rows[number], number)); continue; }
    const start = number;
    while (number + 1 < rows.length && !isShown[number + 1]) number++;
    const first = start, end = number;
    const more = el("button", {type: "button", class: "node", onclick: () => {
      const shown = [];
      for (let each = first; each <= end; each++) shown.push(node(rows[each], each));
      more.replaceWith(...shown);
      shown[0].focus();
    }}, railSvg(lanes[start], width, false), el("span", {class: "tensor"}, `… ${count(end - first + 1, "operator")}${isChanged ? " as before" : ""}`));
    list.append(more);
  }
  return el("div", {}, el("h3", {style: {marginTop: 0}}, isChanged ? `${name[0].toUpperCase()}${name.slice(1)}: ${rows.length}` : "Operators"), list);
}
