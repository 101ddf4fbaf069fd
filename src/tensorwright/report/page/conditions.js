// Machine, versions, noise, the command.

function conditionsSection(report) {
  const machine = report.machine;
  const rows = [];
  const add = (name, value) => { if (value) rows.push({name, value: String(value)}); };
  add("command", report.command);
  add("written", report.written);
  if (machine) {
    add("processor", machine.processor);
    add("fingerprint", machine.fingerprint);
    add("cores", machine.cores);
    add("threads", machine.threads);
    add("caches", machine.caches.join("; "));
    add("target", machine.target);
    add("system", machine.system);
  }
  const profile = report.profile;
  if (profile) {
    const levels = profile.levels.map((level) => `${level.name} ${digits(level.gbytes_per_s)}`).join(", ");
    add("peak", `${digits(profile.peak_gflops_per_s)} GFLOP/s; ${levels} GB/s`);
    add("cost of a call", `${digits(profile.call_ns)} ns; ${digits(profile.start_threads_ns)} ns to start and join threads`);
    if (!profile.adds_up) add("doubt", "the machine was too unsteady to split the time of a run: its parts do not add up to it");
  }
  if (report.noise) add("noise", `${report.noise.others}; the machine reached ${percent(report.noise.peak_share)} of its best peak`);
  for (const [name, version] of Object.entries((machine && machine.versions) || {})) add(name, version);
  for (const [name, reason] of Object.entries(report.missing || {})) add(`not measured: ${name}`, reason);
  const columns = [{title: "what", value: (row) => row.name}, {title: "value", value: (row) => row.value, isName: true}];
  return section("conditions", "Machine, versions, noise", "A time holds for this machine, these versions and this load.",
    report.command && el("pre", {class: "wrap", id: "command"}, report.command),
    el("div", {class: "bar"},
      report.command && el("button", {type: "button", class: "no-print copy", onclick: async () => say(await copyText(report.command) ? "command copied" : "the browser does not let the page copy")}, "Copy command"),
      copyButton(columns, rows, "conditions"),
      el("button", {type: "button", class: "no-print copy", onclick: async () => say(await copyText(JSON.stringify(report, null, 1)) ? "all data copied as JSON" : "the browser does not let the page copy")}, "Copy all data as JSON")),
    table(columns, rows, {caption: "Conditions"}));
}
