// Draw the page from its data; a live page asks for newer data every second.

const EVERY_MS = 1000;

function drawPage(data) {
  const reports = data.reports, report = reports[reports.length - 1];
  const sections = [];
  const add = (id, text, element) => { if (element) sections.push([id, text, element]); };
  if (reports.length > 1) add("compared", "Compared", comparison(reports[0], report));
  add("answer", "Answer", overview(report));
  add("layers", "Time", layers(report));
  add("parts", "Parts", partsSection(report));
  add("graph", "Graph", graphsSection(report));
  add("workloads", "Workloads", workloadsSection(report));
  if (report.machine || report.command) add("conditions", "Conditions", conditionsSection(report));
  if (reports.length > 1) sections[1][2].querySelector("h1").id = "second";
  const bar = document.getElementById("top"), content = document.getElementById("content");
  bar.replaceChildren(topBar(report, sections));
  content.replaceChildren(...sections.map(([, , element]) => element));
  document.getElementById("bottom").textContent = `Written ${moment(report.written)} by tensorwright. All data are inside this page; nothing is fetched.`;
}

async function follow() {
  try {
    const answer = await fetch("data.json", {cache: "no-store"});
    const data = await answer.json();
    drawPage(data);
    if (!data.is_live) { say("the report is complete"); return; }
    setTimeout(follow, EVERY_MS);
  } catch {
    say("the command has ended; this is the last state");
  }
}

const page = JSON.parse(document.getElementById("data").textContent);
drawPage(page);
document.body.append(helpDialog());
document.addEventListener("keydown", onKey);
if (page.is_live) setTimeout(follow, EVERY_MS);
