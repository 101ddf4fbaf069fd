// Charts of a search: best against trials and seconds, predicted against measured.

const CHART = {width: 590, height: 320, left: 62, right: 172, top: 14, bottom: 42};

/** Values at which a logarithmic axis has a mark: 1, 2, 5, 10, ... */
function logTicks(least, most) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); power++) {
    for (const step of [1, 2, 5]) {
      const value = step * 10 ** power;
      if (value >= least * 0.999 && value <= most * 1.001) ticks.push(value);
    }
  }
  return ticks.length > 7 ? ticks.filter((value) => /^1(0*|e.*)$/.test(String(value)) || value < 1 && Math.abs(Math.log10(value) % 1) < 1e-9) : ticks;
}

function linearTicks(most, least) {
  const raw = Math.max(least, most / 5), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= raw);
  const ticks = [];
  for (let value = 0; value <= most * 1.0001; value += step) ticks.push(Number(value.toPrecision(6)));
  return ticks;
}

function axes(xTicks, yTicks, x, y, xText, yText, xTitle, yTitle) {
  const {width, height, left, right, top, bottom} = CHART;
  return [
    yTicks.map((value) => [
      draw("line", {class: "axis", x1: left, x2: width - right, y1: y(value), y2: y(value)}),
      draw("text", {x: left - 8, y: y(value) + 4, "text-anchor": "end"}, yText(value))]),
    xTicks.map((value) => [
      draw("line", {class: "axis", x1: x(value), x2: x(value), y1: height - bottom, y2: height - bottom + 4}),
      draw("text", {x: x(value), y: height - bottom + 17, "text-anchor": "middle"}, xText(value))]),
    draw("text", {x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle"}, xTitle),
    draw("title", {}, `${yTitle} against ${xTitle}`),
  ];
}

function picture(label, ...shapes) {
  return el("div", {class: "chart"}, draw("svg", {viewBox: `0 0 ${CHART.width} ${CHART.height}`, role: "img", "aria-label": label}, shapes));
}

/** The best time after each trial or second, with default, roofline and another runtime as lines; a diamond is the best
  * schedule measured again at the end. */
function bestChart(search, isBySeconds) {
  const timed = search.trials.filter((trial) => isNumber(trial.time_us));
  if (!timed.length) return el("p", {class: "soft"}, "No trial has a time.");
  const of = (trial) => isBySeconds ? trial.at_s : trial.number;
  const marks = [["default", "untuned", search.default_us], ["roofline", "roofline", search.roofline_us], ["rival", search.rival_name || "another runtime", search.rival_us]]
    .filter(([, , value]) => isNumber(value) && value > 0);
  const best = Math.min(...timed.map((trial) => trial.time_us));
  const shown = timed.filter((trial) => trial.time_us <= 30 * best); // what is slower would squeeze the rest
  const values = [...shown.map((trial) => trial.time_us), ...marks.map(([, , value]) => value).filter((value) => value > best / 50)];
  const least = Math.min(...values) / 1.12, most = Math.max(...values) * 1.12;
  const xMost = Math.max(...timed.map(of), isBySeconds ? 0.1 : 1);
  const {width, height, left, right, top, bottom} = CHART;
  const x = (value) => left + (width - left - right) * value / xMost;
  const y = (value) => top + (height - top - bottom) * Math.log(most / value) / Math.log(most / least);
  let path = "", now = null;
  for (const trial of search.trials) {
    if (!isNumber(trial.best_us) || trial.best_us === now) continue;
    path += path ? `H${x(of(trial)).toFixed(1)}V${y(trial.best_us).toFixed(1)}` : `M${x(of(trial)).toFixed(1)} ${y(trial.best_us).toFixed(1)}`;
    now = trial.best_us;
  }
  if (path) path += `H${x(xMost).toFixed(1)}`;
  const again = isNumber(search.best_us) && now !== null && search.best_us !== now ? search.best_us : null;
  const captions = spread([["best", "best", now], ["again", "at the end", again], ...marks].filter(([, , value]) => value !== null && value >= least && value <= most)
    .map(([kind, text, value]) => ({kind, text: `${shortened(text, 12)} ${time(value)}`, y: y(value)})), 14, top, height - bottom);
  return picture(`Best time of ${search.name}`,
    axes(linearTicks(xMost, isBySeconds ? 0.1 : 1), logTicks(least, most), x, y, (value) => String(value), time, isBySeconds ? "seconds of searching" : "trials", "time"),
    shown.map((trial) => draw("circle", {class: trial.is_again ? "trial again" : "trial", cx: x(of(trial)).toFixed(1), cy: y(trial.time_us).toFixed(1), r: 2.5},
      draw("title", {}, `trial ${trial.number}${trial.is_again ? ", measured again" : ""}: ${time(trial.time_us)}${trial.status === "censored" ? ", stopped early" : ""}`))),
    marks.filter(([, , value]) => value >= least).map(([kind, , value]) => draw("line", {class: `mark ${kind}`, x1: left, x2: width - right, y1: y(value), y2: y(value)})),
    path && draw("path", {class: "best", d: path}),
    again !== null && again >= least && again <= most && draw("path", {class: "again", d: `M${x(xMost) - 5} ${y(again)}l5 -5l5 5l-5 5z`},
      draw("title", {}, `the fastest schedules were measured again at the end: ${time(again)}`)),
    captions.map((each) => draw("text", {class: `caption ${each.kind}`, x: width - right + 6, y: each.y + 4}, each.text)));
}

/** Move captions apart so that none covers another. */
function spread(captions, distance, top, bottom) {
  const sorted = [...captions].sort((a, b) => a.y - b.y);
  sorted.forEach((each, number) => { each.y = Math.max(each.y, number ? sorted[number - 1].y + distance : top); });
  for (let number = sorted.length - 1; number >= 0; number--) {
    const limit = number === sorted.length - 1 ? bottom : sorted[number + 1].y - distance;
    sorted[number].y = Math.min(sorted[number].y, limit);
  }
  return sorted;
}

const median = (values) => { const sorted = [...values].sort((a, b) => a - b); return sorted[sorted.length >> 1]; };

/** Predictions with the scale of their round: a model that learns knows ranks, no seconds. */
function scaledPredictions(trials) {
  const rounds = Map.groupBy ? Map.groupBy(trials, (trial) => trial.round) : groupedBy(trials, (trial) => trial.round);
  return [...rounds.values()].flatMap((own) => {
    const scale = Math.exp(median(own.map((trial) => Math.log(trial.time_us / trial.predicted_us))));
    return own.map((trial) => ({...trial, expected_us: trial.predicted_us * scale}));
  });
}

function groupedBy(values, key) {
  const groups = new Map();
  for (const value of values) groups.set(key(value), [...(groups.get(key(value)) || []), value]);
  return groups;
}

/** Of all pairs of a round, the share that the model had in the right order. */
function rightPairs(trials) {
  let right = 0, all = 0;
  for (const own of groupedBy(trials, (trial) => trial.round).values()) {
    for (let one = 0; one < own.length; one++) for (let other = 0; other < one; other++) {
      const measured = own[one].time_us - own[other].time_us, predicted = own[one].predicted_us - own[other].predicted_us;
      if (measured === 0 || predicted === 0) continue;
      all += 1;
      right += measured > 0 === predicted > 0 ? 1 : 0;
    }
  }
  return all ? right / all : null;
}

function predictedChart(search) {
  const withBoth = search.trials.filter((trial) => isNumber(trial.predicted_us) && isNumber(trial.time_us) && trial.predicted_us > 0);
  if (withBoth.length < 2) return el("p", {class: "soft"}, "No predictions were kept for these trials.");
  const trials = scaledPredictions(withBoth);
  const values = trials.flatMap((trial) => [trial.time_us, trial.expected_us]);
  const least = Math.min(...values) / 1.15, most = Math.max(...values) * 1.15;
  const {width, height, left, right, top, bottom} = CHART;
  const position = (value) => Math.log(value / least) / Math.log(most / least);
  const x = (value) => left + (width - left - right) * position(value), y = (value) => height - bottom - (height - top - bottom) * position(value);
  const ticks = logTicks(least, most), share = rightPairs(withBoth);
  return el("div", {}, picture(`Predicted and measured times of ${search.name}`,
    axes(ticks.filter((_, number) => ticks.length < 6 || number % 2 === 0), ticks, x, y, time, time, "measured", "predicted"),
    draw("line", {class: "mark default", x1: x(least), y1: y(least), x2: x(most), y2: y(most)}),
    trials.map((trial) => draw("circle", {class: "trial", cx: x(trial.time_us).toFixed(1), cy: y(trial.expected_us).toFixed(1), r: 3},
      draw("title", {}, `trial ${trial.number}: expected ${time(trial.expected_us)}, took ${time(trial.time_us)}`))),
    draw("text", {x: width - right + 6, y: y(most) + 12}, "as predicted")),
  el("p", {class: "soft"}, `${count(withBoth.length, "trial")}; ${share === null ? "" : `${percent(share)} of the pairs of a round in the right order. `}Predictions are scaled so that the medians of each round agree: a model that has learned knows only which is faster.`));
}
