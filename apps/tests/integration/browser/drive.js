// Uses the page as a person would, and tells what it found as JSON in an element `result`. Appended to the page by `browser.rs`.

const page = window.maniple;
const canvas = document.getElementById("timeline");
const result = { problems: [] };
const check = (is, what) => is || result.problems.push(what);
addEventListener("error", (event) => result.problems.push(`error: ${event.message}`));

const mouse = (type, x, y, more = {}) => {
  const box = canvas.getBoundingClientRect();
  const Made = type.startsWith("pointer") ? PointerEvent : type === "wheel" ? WheelEvent : MouseEvent;
  canvas.dispatchEvent(new Made(type, { bubbles: true, cancelable: true, clientX: box.left + x, clientY: box.top + y, ...more }));
};
const click = (x, y) => ["pointerdown", "pointerup"].forEach((type) => mouse(type, x, y));
const key = (name) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
const width = () => page.view.end - page.view.start;

/** The colors of a part of the canvas, as a set. */
function colors(x, y, wide, high) {
  page.draw();
  const ratio = devicePixelRatio;
  const copy = document.createElement("canvas");
  [copy.width, copy.height] = [wide * ratio, high * ratio];
  const pen = copy.getContext("2d", { willReadFrequently: true });
  pen.drawImage(canvas, -x * ratio, -y * ratio);
  const { data } = pen.getImageData(0, 0, copy.width, copy.height);
  const found = new Set();
  for (let i = 0; i < data.length; i += 4) found.add(data.slice(i, i + 4).join());
  return found;
}

/** A color as `colors` has it. */
function rgba(name) {
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  pen.fillStyle = name;
  pen.fillRect(0, 0, 1, 1);
  return pen.getImageData(0, 0, 1, 1).data.join();
}

function find(wanted) {
  for (let span = 0; span < page.spans.count; span++) if (wanted(span)) return span;
  return -1;
}

const isTask = (span) => page.data.kinds[page.spans.kind(span)] === "task";
const named = (start) => (span) => isTask(span) && page.spanName(span).startsWith(start);

// Everything is drawn, in the colors of the tasks.
page.draw();
result.spans = page.spans.count;
result.operations = page.operations.count;
result.drawn = page.drawn.spans + page.drawn.columns;
check(result.drawn > 0, "nothing is drawn");
check(colors(132, 100, canvas.clientWidth - 140, canvas.clientHeight - 110).size > 5, "the timeline is of few colors");
result.names = [...new Set(page.data.times.map((times) => times.name))];

// Zoom and pan, by wheel, keys and dragging.
const whole = width();
mouse("wheel", 600, 150, { deltaY: -400 });
check(width() < 0.7 * whole, "the wheel does not zoom in");
const at = page.view.start;
key("d");
check(page.view.start > at, "d does not go on in time");
key("a");
check(Math.abs(page.view.start - at) < whole / 1e6, "a does not go back");
mouse("pointerdown", 600, 150);
mouse("pointermove", 500, 150);
mouse("pointerup", 500, 150);
check(page.view.start > at, "dragging to the left does not go on in time");
check(page.view.selected === -1, "dragging selects");
key("w");
const zoomed = width();
key("s");
check(width() > zoomed, "s does not zoom out");
key("0");
check(page.view.start === 0 && width() === whole, "0 does not show everything");

// A click selects, and shows what the task waited for and what waited for it.
// One of those that were launched before what they came after had ended: of the others the runtime need not know any more.
const names = (list) => list.map(page.spanName);
const chosen = find((span) => {
  if (!named("distribute_charge[2]")(span)) return false;
  page.select(span);
  return names(page.view.before).includes("calc_new_currents[2]") && names(page.view.after).includes("update_voltages[2]");
});
page.select(-1);
check(chosen >= 0, "there is no task to select");
page.show(page.spans.start[chosen] - page.spans.duration[chosen], page.spans.start[chosen] + 2 * page.spans.duration[chosen]);
page.draw();
const place = page.placeOf(chosen);
click((place.left + place.right) / 2, place.middle);
check(page.view.selected === chosen, `a click at ${JSON.stringify(place)} selects ${page.view.selected}, not ${chosen}`);
check(colors(place.left - 3, place.top - 3, place.right - place.left + 6, 20).has(rgba("#d6336c")), "the selected task is not outlined");
result.selected = page.spanName(page.view.selected);
result.before = names(page.view.before);
result.after = names(page.view.after);
const panel = document.getElementById("selected").textContent;
check(panel.includes("distribute_charge[2]") && panel.includes("waited for a processor"), "the panel does not tell of the selected task");
const early = page.view.before.filter((span) => page.spans.start[span] + page.spans.duration[span] > page.spans.start[chosen]);
const times = (span) => `${page.spanName(span)} from ${page.spans.start[span]} for ${page.spans.duration[span]}`;
check(early.length === 0, `what it waited for had not ended: ${[chosen, ...early].map(times)}`);
check(page.view.after.every((span) => page.spans.start[span] >= page.spans.start[chosen] + page.spans.duration[chosen]), "who waited for it had begun");

// A link in the panel goes to the other task.
document.querySelector("#selected li a").click();
check(page.view.selected >= 0 && page.view.selected !== chosen, "a link does not select");
page.draw();
const other = page.placeOf(page.view.selected);
check(other.right > 132 && other.left < canvas.clientWidth, "what a link selects is not shown");

// Search.
key("Escape");
check(page.view.selected === -1, "Escape does not forget the selection");
const box = document.getElementById("search");
box.value = "update_volt";
box.dispatchEvent(new Event("input"));
result.found = document.getElementById("found").textContent;
box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
check(page.spanName(page.view.selected).includes("update_volt"), "Enter does not go to what was found");
key("Escape");
check(page.view.matches === null, "Escape does not forget the search");

// The critical path.
document.getElementById("path").click();
key("0");
check(page.view.showsPath && colors(132, 100, canvas.clientWidth - 140, 200).has(rgba("#d6336c")), "the critical path is not drawn");
result.steps = page.path.span.length;
check(document.getElementById("critical").textContent.includes("longest chain"), "the critical path is not told");

// Tables, themes, help.
for (const tab of ["tasks", "lost", "critical", "selected"]) {
  document.querySelector(`[data-tab=${tab}]`).click();
  check(document.getElementById(tab).clientHeight > 0 && document.getElementById(tab).textContent.length > 40, `the tab ${tab} is empty`);
}
result.rows = document.querySelectorAll("#tasks tbody tr:not(.group)").length;
document.querySelector("[data-sort=name]").click();
const order = [...document.querySelectorAll("#tasks tr.group:first-child ~ tr")].map((row) => row.cells[0].textContent.trim());
check(order[0] < order[1], "a click on a column does not sort");
const light = [...colors(0, 0, 130, 24)].join();
document.getElementById("theme").click();
check([...colors(0, 0, 130, 24)].join() !== light, "the theme does not change");
key("?");
check(document.getElementById("help").open, "? does not show the keys");

// Nobody was asked for anything.
result.requests = performance.getEntriesByType("resource").map((entry) => entry.name);
const element = document.createElement("pre");
element.id = "result";
element.textContent = JSON.stringify(result);
document.body.append(element);
