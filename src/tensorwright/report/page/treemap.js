// Time by layer: areas are times, colours are shares of the roofline.

/** The colour of a share of the roofline: red where much is left, blue where nothing is. */
function shareColour(share) {
  const kept = Math.max(0, Math.min(1, share));
  const hue = Math.round(35 + 205 * kept);
  return `light-dark(oklch(84% 0.105 ${hue}), oklch(42% 0.1 ${hue}))`;
}

/**
 * Squares as good as they can be: [{x, y, width, height}] for falling areas, all between 0 and 1.
 * Bruls, Huizing, van Wijk, Squarified Treemaps, VisSym 2000.
 */
function squarify(areas, width, height) {
  const total = areas.reduce((sum, area) => sum + area, 0) || 1;
  const scaled = areas.map((area) => area / total * width * height);
  const boxes = [];
  let box = {x: 0, y: 0, width, height}, row = [];
  const worst = (list, side) => {
    const sum = list.reduce((a, b) => a + b, 0);
    return Math.max(...list.map((area) => Math.max(side * side * area / (sum * sum), sum * sum / (side * side * area))));
  };
  const placeRow = () => {
    const sum = row.reduce((a, b) => a + b, 0);
    if (box.width >= box.height) {
      const thick = sum / box.height;
      let y = box.y;
      for (const area of row) { boxes.push({x: box.x, y, width: thick, height: area / thick}); y += area / thick; }
      box = {x: box.x + thick, y: box.y, width: box.width - thick, height: box.height};
    } else {
      const thick = sum / box.width;
      let x = box.x;
      for (const area of row) { boxes.push({x, y: box.y, width: area / thick, height: thick}); x += area / thick; }
      box = {x: box.x, y: box.y + thick, width: box.width, height: box.height - thick};
    }
    row = [];
  };
  for (const area of scaled) {
    const side = Math.min(box.width, box.height);
    if (row.length && worst([...row, area], side) > worst(row, side)) placeRow();
    row.push(area);
  }
  if (row.length) placeRow();
  return boxes;
}

function estimate(step) {
  return Math.max(step.arithmetic_us, step.memory_us + step.cache_us);
}

/** The least time of a step: the estimate, or its own time if that is less. */
function leastTime(step) {
  return Math.min(estimate(step), step.time_us);
}

/** The share of the roofline as text: a question mark behind what nothing explains. */
function roofText(row) {
  const share = estimate(row) / row.time_us;
  return `${share > 1 ? "over " : ""}${percent(row.least_us / row.time_us)}${share > 1.15 && !row.saves_by ? "?" : ""}`;
}

/** Steps, or the steps of each workload together. */
function grouped(steps, isByWorkload) {
  if (!isByWorkload) return steps.map((step) => ({...step, least_us: leastTime(step), count: 1}));
  const groups = new Map();
  for (const step of steps) {
    const key = step.workload || `${step.kind} ${step.label}`;
    const group = groups.get(key);
    if (!group) groups.set(key, {...step, least_us: leastTime(step), count: 1});
    else {
      group.time_us += step.time_us;
      group.share += step.share;
      group.least_us += leastTime(step);
      for (const part of ["arithmetic_us", "memory_us", "cache_us"]) group[part] += step[part];
      group.flops += step.flops;
      group.bytes_moved += step.bytes_moved;
      group.count += 1;
    }
  }
  return [...groups.values()];
}

const LAYER_COLUMNS = [
  {title: "step", value: (row) => row.number, isNumber: true},
  {title: "operators", value: (row) => row.label, isName: true},
  {title: "writes", value: (row) => row.outputs[0] || "", text: (row) => shortened(row.outputs[0] || "-", 40), isName: true},
  {title: "time_us", value: (row) => row.time_us, text: (row) => time(row.time_us), isNumber: true},
  {title: "share", value: (row) => row.share, text: (row) => percent(row.share), isNumber: true},
  {title: "gflops_per_s", value: (row) => row.flops / row.time_us / 1e3, text: (row) => row.flops ? digits(row.flops / row.time_us / 1e3) : "-", isNumber: true},
  {title: "gbytes_per_s", value: (row) => row.bytes_moved / row.time_us / 1e3, text: (row) => digits(row.bytes_moved / row.time_us / 1e3), isNumber: true},
  {title: "roofline", value: (row) => row.least_us / row.time_us, text: (row) => row.kind === "host" ? "-" : roofText(row), isNumber: true},
  {title: "limited by", value: (row) => row.bottleneck},
];

function layers(report) {
  const profile = report.profile;
  if (!profile || !profile.steps.length) return null;
  const state = {isByWorkload: false, isTable: false};
  const view = el("div", {}), detail = el("div", {class: "card detail", "aria-live": "polite"}), controls = el("div", {class: "bar"});
  const legend = el("div", {class: "legend push"}, "0 %", el("span", {class: "scale", "aria-hidden": "true", style: {
    background: `linear-gradient(to right in oklch, ${[0, 0.25, 0.5, 0.75, 1].map(shareColour).join(", ")})`}}), "100 % of the roofline");
  const show = () => {
    const rows = grouped(profile.steps, state.isByWorkload).filter((row) => row.time_us > 0).sort((a, b) => b.time_us - a.time_us);
    controls.replaceChildren(
      choices("What a cell is", [[false, "Each step"], [true, "By workload"]], state.isByWorkload, (value) => { state.isByWorkload = value; show(); }),
      choices("How it is shown", [[false, "Treemap"], [true, "Table"]], state.isTable, (value) => { state.isTable = value; show(); }),
      copyButton(LAYER_COLUMNS, rows, "layers"), legend);
    view.replaceChildren(state.isTable
      ? table(LAYER_COLUMNS, rows, {caption: "Time by layer", choose: (row) => describe(row)})
      : treemap(rows, describe));
    if (rows.length) describe(rows[0]);
  };
  const describe = (row) => detail.replaceChildren(...layerDetail(row, report));
  show();
  const isDoubted = profile.steps.some((step) => step.kind !== "host" && !step.saves_by && estimate(step) > 1.15 * step.time_us);
  return section("layers", "Where the time goes",
    `Each area is the time of a step in the running network, whose runs took ${time(profile.network_us)} while its steps were timed; each colour its share of what this machine could do at most (the roofline). Large and red is where to look.`,
    controls, view, detail, isDoubted && el("p", {class: "soft", style: {marginTop: "10px"}},
      "? above 115 %: peak and bandwidths were measured too low, on a busy machine or at a lower clock, or the data lay in a nearer cache than is assumed."));
}

function treemap(rows, describe) {
  const box = el("div", {class: "treemap", role: "group", "aria-label": "Treemap of time by layer"});
  const width = 100, height = 37;
  squarify(rows.map((row) => row.time_us), width, height).forEach((at, number) => {
    const row = rows[number], share = row.least_us / row.time_us;
    const isHost = row.kind === "host";
    const area = at.width * at.height / (width * height);
    const label = row.count > 1 ? `${row.count} × ${row.label}` : row.label;
    box.append(el("button", {
      type: "button", class: "cell", title: `${label}: ${time(row.time_us)}, ${percent(row.share)} of the time, ${roofText(row)} of the roofline`,
      style: {
        left: `${100 * at.x / width}%`, top: `${100 * at.y / height}%`,
        width: `${100 * at.width / width}%`, height: `${100 * at.height / height}%`,
        background: isHost ? "var(--line)" : shareColour(share), padding: area > 0.004 ? null : "0",
      },
      onclick: () => describe(row), onfocus: () => describe(row),
    }, area > 0.006 && at.width > 6 && at.height > 3.2 ? [el("b", {}, label),
      at.height > 5 && el("span", {}, time(row.time_us)),
      at.height > 7 && el("span", {}, isHost ? "on the host" : `${roofText(row)} of roofline`)] : []));
  });
  return box;
}

/** What is known of a layer, and what halving it would save. */
function layerDetail(row, report) {
  const whole = report.profile.network_us;
  const entry = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
  const result = el("b", {});
  const factor = el("input", {type: "range", min: 1, max: 8, step: 0.1, value: 2, "aria-label": "What if this were faster: times"});
  const text = el("span", {});
  const update = () => {
    const saved = row.time_us * (1 - 1 / Number(factor.value));
    text.textContent = ` What if ${row.count > 1 ? "these were" : "this were"} ${digits(Number(factor.value))} times as fast? `;
    const isBeyond = row.time_us / Number(factor.value) < row.least_us;
    result.textContent = `${time(saved)} less, ${percent(saved / whole)} of a run${isBeyond ? "; that is more than the roofline allows" : ""}`;
  };
  factor.addEventListener("input", update);
  update();
  return [
    el("b", {}, row.count > 1 ? `${row.count} × ${row.label}` : `Step ${row.number}: ${row.label}`),
    el("span", {class: "soft"}, ` ${row.count > 1 ? row.workload : row.outputs.join(", ")}`),
    el("dl", {}, entry("time", `${time(row.time_us)} (${percent(row.share)})`), entry("at least", time(row.least_us)), row.above_roofline ? entry("the estimate was", `${time(estimate(row))}: ${row.above_roofline}`) : "",
      entry("limited by", row.bottleneck), entry("schedule", row.tuned === null ? "-" : row.tuned ? "measured" : "predicted")),
    el("div", {class: "no-print"}, factor, text, result),
    row.workload && report.workloads.some((each) => each.key === row.workload)
      && el("a", {href: "#workloads", onclick: () => chooseWorkload(row.workload)}, "Its search"),
  ].filter(Boolean);
}
