// Two reports: what has changed from the first to the second.

function comparison(before, after) {
  const ratioText = (was, is) => isNumber(was) && isNumber(is) && is > 0 ? times(was / is) : "-";
  const totals = [
    ["one run", before.answer.time_us, after.answer.time_us],
    ["roofline", before.answer.roofline_us, after.answer.roofline_us],
    ["left on the table", before.answer.left_us, after.answer.left_us],
    ...["ONNX Runtime", "OpenVINO"].map((name) => {
      const of = (report) => ((report.rivals && report.rivals.rivals) || []).find((rival) => rival.name === name)?.time_us;
      return [name, of(before), of(after)];
    }),
  ].filter(([, was, is]) => isNumber(was) || isNumber(is)).map(([what, was, is]) => ({what, was, is}));
  const columns = [
    {title: "what", value: (row) => row.what, isName: true},
    {title: "before_us", value: (row) => row.was, text: (row) => time(row.was), isNumber: true},
    {title: "after_us", value: (row) => row.is, text: (row) => time(row.is), isNumber: true},
    {title: "times as fast", value: (row) => isNumber(row.was) && isNumber(row.is) ? row.was / row.is : null, isNumber: true,
      text: (row) => el("span", {class: row.was > 1.02 * row.is ? "good" : row.is > 1.02 * row.was ? "bad" : "soft"}, ratioText(row.was, row.is))},
  ];
  const ofSteps = (report) => new Map(grouped((report.profile && report.profile.steps) || [], true).map((row) => [row.workload || row.label, row]));
  const was = ofSteps(before), is = ofSteps(after);
  const layersRows = [...new Set([...was.keys(), ...is.keys()])].map((key) => ({
    what: `${(is.get(key) || was.get(key)).label} ${key.slice(0, 6)}`, was: was.get(key)?.time_us, is: is.get(key)?.time_us,
  })).sort((a, b) => Math.abs((b.was || 0) - (b.is || 0)) - Math.abs((a.was || 0) - (a.is || 0)));
  const searched = new Map(before.workloads.map((row) => [row.key, row]));
  const searchRows = after.workloads.filter((row) => searched.has(row.key)).map((row) => ({
    what: `${row.name} ${row.key.slice(0, 6)}`, was: searched.get(row.key).best_us, is: row.best_us,
  }));
  const differing = differences(before, after);
  const isSame = before.machine && after.machine && before.machine.fingerprint === after.machine.fingerprint;
  const isBusy = [before, after].some((report) => report.noise && report.noise.is_busy);
  const ratio = before.answer.time_us / after.answer.time_us;
  const [one, other] = [before, after].map((report) => report.parts?.parts?.at(-1)); // turns of the tuned program
  const isNoise = one && one.part === other?.part && one.most_us >= other.least_us && other.most_us >= one.least_us;
  const head = !isNumber(ratio) ? "Two reports compared" : isNoise ? "As fast as before, within the noise"
    : `${digits(ratio >= 1 ? ratio : 1 / ratio)} times ${ratio >= 1 ? "as fast" : "as slow"} as before`;
  const block = (name, rows) => rows.length > 0 && [el("h3", {}, name),
    el("div", {class: "bar"}, copyButton(columns, rows, name)), table(columns, rows.slice(0, 40), {caption: name})];
  return el("section", {id: "compared", "aria-label": "Comparison"},
    el("p", {class: "soft", style: {margin: 0}}, `${before.name}, ${moment(before.written)}, and ${after.name}, ${moment(after.written)}`),
    el("h1", {id: "headline"}, head),
    el("p", {class: "soft"}, `The two were measured at different moments${isSame ? "" : ", on different machines"}: small differences say nothing.${isBusy ? " Others used the machine meanwhile: doubt these times." : ""} Below, the second report in full.`),
    block("The whole", totals), block("Layers, the largest change first", layersRows), block("Best times on record", searchRows),
    differing.length > 0 && [el("h3", {}, "Other conditions"), table([
      {title: "what", value: (row) => row.what}, {title: "before", value: (row) => row.was, isName: true}, {title: "after", value: (row) => row.is, isName: true}],
    differing, {caption: "Other conditions"})]);
}

function differences(before, after) {
  const facts = (report) => {
    const machine = report.machine || {};
    return {command: report.command, processor: machine.processor, threads: machine.threads, target: machine.target,
      others: report.noise && report.noise.others, ...(machine.versions || {})};
  };
  const was = facts(before), is = facts(after);
  return [...new Set([...Object.keys(was), ...Object.keys(is)])].filter((what) => was[what] !== is[what])
    .map((what) => ({what, was: was[what] ?? "-", is: is[what] ?? "-"}));
}
