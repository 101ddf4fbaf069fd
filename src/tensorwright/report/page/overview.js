// First the answer: how fast, against whom, what is left.

const MOST_SPREAD = 2; // the range of a ratio over the turns; a wider one says nothing

/** A ratio in words, with its range. */
function against(ratio, {is_sure, least, most}, name) {
  const between = `(${range(least, most)})`;
  if (!is_sure && most > MOST_SPREAD * least) return `Too unsteady a machine to compare with ${name} ${between}`;
  if (!is_sure) return `As fast as ${name}, within the noise ${between}`;
  return `${digits(ratio)} times ${ratio >= 1 ? "as fast as" : "the speed of"} ${name} ${between}`;
}

/** The answer in one sentence. */
function headline(report) {
  const {rival, left_us, roofline_us, untuned, unsearched} = report.answer;
  const words = [];
  if (rival) {
    words.push(against(rival.ratio, rival, rival.name));
  } else if (untuned) {
    if (untuned.is_same) words.push("Nothing was faster than the untuned program");
    else words.push(against(untuned.speed_up, untuned, "untuned"));
  } else if (unsearched) {
    words.push("Untuned");
  }
  if (isNumber(roofline_us)) words.push(isNumber(left_us) ? `${time(left_us)} left on the table` : "what is left on the table is not known");
  if (report.live) words.push(report.live.phase === "done" ? "the search has ended" : `now: ${report.live.phase}`);
  return words.join("; ") || "What the search has tried";
}

function overview(report) {
  const answer = report.answer;
  const tiles = [];
  const tile = (label, number, note) => tiles.push(el("div", {class: "card tile"},
    el("div", {class: "label"}, label), el("div", {class: "number"}, number), el("div", {class: "note"}, note)));
  if (report.live) {
    const live = report.live;
    tile("Trials", String(live.trials), live.trials_budget ? `of ${live.trials_budget}` : `round ${live.round}`);
    tile("Time passed", seconds(live.elapsed_s), isNumber(live.left_s) ? `${seconds(live.left_s)} left` : "");
    tile("Sum of the best so far", time(live.best_us), `untuned ${time(live.default_us)}; measured at different moments`);
  }
  if (isNumber(answer.time_us)) {
    tile("One run", time(answer.time_us), answer.runs ? `median of ${count(answer.runs, "run")}` : "in turns with what follows");
  }
  for (const rival of (report.rivals && report.rivals.rivals) || []) {
    if (isNumber(rival.ratio)) {
      tile(`Against ${rival.name} ${rival.version || ""}`, times(rival.ratio),
        `${range(rival.least, rival.most)}, in turns; it takes ${time(rival.time_us)}`);
    } else {
      tile(`Against ${rival.name} ${rival.version || ""}`, "-", rival.reason || "");
    }
  }
  if (answer.untuned) {
    tile("Against untuned", times(answer.untuned.speed_up),
      answer.untuned.is_same ? "the untuned program stays" : `${range(answer.untuned.least, answer.untuned.most)}, in turns`);
  }
  if (answer.unsearched) tile("Against untuned", "not searched", answer.unsearched);
  if (isNumber(answer.roofline_us)) {
    tile("Left on the table", time(answer.left_us), isNumber(answer.left_us)
      ? `this machine needs at least ${time(answer.roofline_us)} for these operations and bytes${answer.capped ? `, if ${count(answer.capped, "step")} that ${answer.capped > 1 ? "are" : "is"} faster than the estimate cannot be faster still` : ""}`
      : `not known: the peak was measured too low, by it a run would take ${time(answer.roofline_us)} at least`);
  }
  const warning = report.noise && report.noise.warning;
  return el("section", {id: "answer", "aria-label": "The answer"},
    el("p", {class: "soft", style: {margin: 0}}, `${report.name}${answer.at ? ` at ${answer.at}` : ""}, ${report.machine ? `${report.machine.processor}, ${count(report.machine.threads, "thread")}` : ""}`),
    el("h1", {id: "headline"}, headline(report)),
    el("div", {class: "tiles"}, tiles),
    warning && el("div", {class: "warning"}, `Doubt these times: ${warning.replaceAll("\n  ", "\n")}`));
}
