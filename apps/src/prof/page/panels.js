// Tables: tasks, where time went, the critical path, the selection.

const byId = (id) => document.getElementById(id);

const swatch = (color) => `<i class="swatch" style="background:${color}"></i>`;
const spanLink = (span) => `<a class="span" data-span="${span}">${escape(spanName(span))}</a>`;

/** A bar of parts, each with a color, a size and a name. */
function bar(parts, whole) {
  const pieces = parts.filter(({ size }) => size > 0);
  return `<div class="bar">${pieces.map(({ color, size, name }) => `<i style="width:${(100 * size) / Math.max(1, whole)}%;background:${color}" title="${escape(name)} ${percent(size, whole)}"></i>`).join("")}</div>`;
}

const TIMES_COLUMNS = [
  ["name", "name", "text"], ["count", "count"], ["total", "total"], ["mean", "mean"], ["median", "median"], ["percentile_99", "99%"], ["max", "max"],
];
let sortedBy = "total";

function showTimes() {
  const head = TIMES_COLUMNS.map(([key, title, style]) => `<th class="sortable ${style ?? ""}" data-sort="${key}" ${key === sortedBy ? 'aria-sort="descending"' : ""}>${title}</th>`).join("");
  const groups = [
    ["tasks", data.times.filter((times) => times.kind === kindOf.task)],
    ["work of the runtime", data.times.filter((times) => times.kind !== kindOf.task)],
  ];
  const most = Math.max(1, ...data.times.map((times) => times.total));
  const body = groups.map(([title, rows]) => {
    const lines = sorted(rows).map((times) => timesRow(times, most)).join("");
    return `<tr class="group"><td colspan="8">${title}</td></tr>${lines}`;
  });
  byId("tasks").innerHTML = `<table><thead><tr>${head}<th></th></tr></thead><tbody>${body.join("")}</tbody></table>
    <p class="note">What each took itself: without the runtime's work in between, and without waits. Click a name to find it in the timeline.</p>`;
}

function sorted(rows) {
  const compare = sortedBy === "name" ? (a, b) => a.name.localeCompare(b.name) : (a, b) => b[sortedBy] - a[sortedBy];
  return [...rows].sort(compare);
}

function timesRow(times, most) {
  const color = timesColor(times);
  const name = labelName(times);
  const numbers = [times.total, times.mean, times.median, times.percentile_99, times.max].map((ns) => `<td>${time(ns)}</td>`).join("");
  return `<tr><td class="text"><a class="span" data-find="${escape(name)}">${swatch(color)} ${escape(name)}</a></td><td>${times.count.toLocaleString("en")}</td>${numbers}
    <td>${bar([{ color, size: times.total, name }], most)}</td></tr>`;
}

function showLost() {
  const sum = (lane, wanted) => lane.times.reduce((sum, time, activity) => sum + (wanted(activity) ? time : 0), 0);
  const line = (name, times) => {
    const whole = times.reduce((sum, time) => sum + time, 0);
    const parts = times.map((size, activity) => ({ size, color: activityColor(data.activities[activity]), name: data.activities[activity] }));
    const numbers = times.map((size) => `<td>${percent(size, whole)}</td>`).join("");
    const lost = sum({ times }, (activity) => data.is_runtime[activity]);
    return `<tr><td class="text">${escape(name)}</td><td>${bar(parts, whole)}</td>${numbers}<td><b>${percent(lost, whole)}</b></td><td>${time(lost)}</td></tr>`;
  };
  const all = data.activities.map((_, activity) => workers.reduce((sum, lane) => sum + lane.times[activity], 0));
  const head = data.activities.map((name) => `<th>${swatch(activityColor(name))} ${name}</th>`).join("");
  byId("lost").innerHTML = `<table><thead><tr><th></th><th></th>${head}<th>runtime in all</th><th></th></tr></thead>
    <tbody>${line("all processors", all)}${lanes.map((lane) => line(lane.name, lane.times)).join("")}</tbody></table>
    <p class="note">Lost to the runtime is what processors did that was no task's work: analysis, mapping, the mapper's decisions, copies, and other.</p>`;
}

function showCritical() {
  const byLabel = new Map();
  let whole = 0, nothing = 0;
  for (let i = 0; i < path.span.length; i++) {
    const took = path.end[i] - path.start[i];
    whole += took;
    if (path.span[i] < 0) nothing += took;
    else {
      const label = data.labels[spans.label[path.span[i]]];
      const known = byLabel.get(label.kind + label.name) ?? { label, took: 0, steps: 0, span: path.span[i], color: labelColors[spans.label[path.span[i]]] };
      known.took += took;
      known.steps++;
      if (spans.duration[path.span[i]] > spans.duration[known.span]) known.span = path.span[i];
      byLabel.set(label.kind + label.name, known);
    }
  }
  const parts = [...byLabel.values()].sort((a, b) => b.took - a.took);
  const rows = parts.map(({ label, took, steps, span, color }) =>
    `<tr><td class="text">${swatch(color)} ${escape(labelName(label))}</td><td class="text">${data.kinds[label.kind]}</td><td>${steps.toLocaleString("en")}</td><td>${time(took)}</td><td>${percent(took, whole)}</td><td class="text">${spanLink(span)}</td></tr>`);
  const chain = data.longest_chain;
  byId("critical").innerHTML = `
    <p class="note">What the end waited for, back to the beginning: making this faster makes the program faster, until another path takes its place.
      ${time(whole)} in ${counted(path.span.length, "step", "steps")}; ${percent(nothing, whole)} of it nothing was done.</p>
    ${bar(parts.map(({ label, took, color }) => ({ size: took, color, name: labelName(label) })), whole)}
    <table><thead><tr><th class="text">on the path</th><th class="text">kind</th><th>steps</th><th>time</th><th>share</th><th class="text">longest</th></tr></thead><tbody>${rows.join("")}</tbody></table>
    <p class="note">The longest chain of tasks and transfers that come one after another takes ${time(chain.duration)} in ${counted(chain.operations, "operation", "operations")}:
      with a free runtime and any number of processors, the program would still take that long, ${percent(chain.duration, duration)} of what it took.</p>`;
}

const MOST_LISTED = 300;

function showSelected() {
  const span = view.selected;
  if (span < 0) {
    byId("selected").innerHTML = `<p class="note">Click something in the timeline: here stands what it waited for, and who waited for it.</p>`;
    return;
  }
  const list = (title, color, found, none) => `<div><h3>${swatch(color)} ${title} (${found.length})</h3>
    ${found.length ? `<ul>${found.slice(0, MOST_LISTED).map((other) => `<li>${spanLink(other)} <small>${time(spans.duration[other])}, ${when(span, other)}</small></li>`).join("")}${found.length > MOST_LISTED ? `<li>and ${found.length - MOST_LISTED} more</li>` : ""}</ul>` : `<p class="note">${none}</p>`}</div>`;
  byId("selected").innerHTML = `<div class="columns">
    <div><h3>${escape(spanName(span))}</h3><dl>${facts(span).map(([name, value]) => `<dt>${name}</dt><dd>${value}</dd>`).join("")}</dl></div>
    ${list("waited for", theme.before, view.before, "nothing that the profile knows of")}
    ${list("waited for this", theme.after, view.after, "nothing")}</div>`;
  showTab("selected");
}

/** How far another span is from this one, in words. */
function when(span, other) {
  const gap = spans.start[span] - spans.end(other);
  if (gap >= 0) return `ended ${time(gap)} before`;
  const wait = spans.start[other] - spans.end(span);
  return wait >= 0 ? `began ${time(wait)} after` : "at the same time";
}

function facts(span) {
  const operation = spans.operation[span];
  const found = [
    ["kind", data.kinds[spans.kind(span)]],
    ["on", escape(lanes[spans.lane[span]].name)],
    ["from", time(spans.start[span])],
    ["took", `<b>${time(spans.duration[span])}</b>`],
  ];
  const place = data.labels[spans.label[span]].launched;
  if (place) found.push(["launched at", escape(place)]);
  if (operation < 0) return found;
  const bodies = Array.from(spansOf.of(operation)).filter((other) => spans.label[other] === spans.label[span] && spans.depth[other] === spans.depth[span]);
  if (bodies.length > 1) found.push(["in all", `${time(bodies.reduce((sum, body) => sum + spans.duration[body], 0))} in ${bodies.length} parts`]);
  const [launched, ready, by] = [operations.launched[operation] - 1, operations.ready[operation] - 1, operations.by[operation] - 1];
  const first = spans.start[mainSpan(operation) >= 0 ? mainSpan(operation) : span];
  if (launched >= 0) {
    const launcher = by >= 0 ? mainSpan(by) : -1;
    found.push(["launched", `${time(launched)}${launcher >= 0 ? ` by ${spanLink(launcher)}` : ""}`]);
    found.push(["waited for others", time(Math.max(0, ready - launched))]);
    found.push(["waited for a processor", time(Math.max(0, first - Math.max(ready, launched)))]);
  }
  if (operations.bytes[operation] > 0) found.push(["moved", bytes(operations.bytes[operation])]);
  return found;
}

function showTab(name) {
  document.querySelectorAll("nav button").forEach((tab) => tab.setAttribute("aria-selected", String(tab.dataset.tab === name)));
  document.querySelectorAll(".tab").forEach((tab) => tab.classList.toggle("shown", tab.id === name));
}

function showLegend() {
  const tasks = data.times.filter((times) => times.kind === kindOf.task).slice(0, 24);
  const kinds = [...new Set(data.times.filter((times) => times.kind !== kindOf.task).map((times) => data.kinds[times.kind]))];
  const item = (color, name, find) => `<button data-find="${escape(find)}">${swatch(color)}${escape(name)}</button>`;
  byId("legend").innerHTML =
    tasks.map((times) => item(timesColor(times), times.name, times.name)).join("") +
    kinds.map((kind) => item(RUNTIME_COLORS[kind], kind, `${kind}:`)).join("");
}

function showPanels() {
  showLegend();
  showTimes();
  showLost();
  showCritical();
  if (view.selected >= 0) showSelected();
}
