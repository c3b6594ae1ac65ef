// Keys, mouse, and the beginning.

const canvas = timeline.canvas;
let pointer = { x: GUTTER, y: 0 };

function find(text) {
  byId("search").value = text;
  search(text);
  byId("found").textContent = view.matches ? counted(countMatches(), "span", "spans") : "";
}

function setPath(isShown) {
  view.showsPath = isShown;
  byId("path").setAttribute("aria-pressed", String(isShown));
  if (isShown) showTab("critical");
  redraw();
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  readTheme();
  showPanels();
  redraw();
}

function clear() {
  find("");
  setPath(false);
  select(-1);
}

canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const amount = event.deltaMode === 1 ? event.deltaY * 30 : event.deltaY;
  if (event.shiftKey || event.offsetX < GUTTER) {
    view.scroll += amount || event.deltaX;
    redraw();
  } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX * perPixel());
  else zoom(1.0016 ** amount, momentAt(event.offsetX));
}, { passive: false });

canvas.addEventListener("pointerdown", (event) => {
  const began = { x: event.clientX, y: event.clientY, start: view.start, end: view.end, scroll: view.scroll };
  let isDrag = false;
  const move = (event) => {
    const [right, down] = [event.clientX - began.x, event.clientY - began.y];
    isDrag ||= Math.hypot(right, down) > 4;
    if (!isDrag) return;
    canvas.classList.add("dragging");
    view.scroll = began.scroll - down;
    show(began.start - right * perPixel(), began.end - right * perPixel());
  };
  const up = (event) => {
    removeEventListener("pointermove", move);
    removeEventListener("pointerup", up);
    removeEventListener("pointercancel", up);
    canvas.classList.remove("dragging");
    const box = canvas.getBoundingClientRect();
    if (!isDrag && event.type === "pointerup") select(spanAt(event.clientX - box.left, event.clientY - box.top));
  };
  addEventListener("pointermove", move);
  addEventListener("pointerup", up);
  addEventListener("pointercancel", up);
});

canvas.addEventListener("dblclick", (event) => {
  const span = spanAt(event.offsetX, event.offsetY);
  if (span >= 0) zoomTo(span);
});

canvas.addEventListener("pointermove", (event) => {
  pointer = { x: event.offsetX, y: event.offsetY };
  const span = event.buttons ? -1 : spanAt(pointer.x, pointer.y);
  if (span !== view.hovered) {
    view.hovered = span;
    redraw();
  }
  showTip(event, span);
});
canvas.addEventListener("pointerleave", () => {
  view.hovered = -1;
  byId("tip").hidden = true;
  redraw();
});

function showTip(event, span) {
  const tip = byId("tip");
  tip.hidden = span < 0;
  if (span < 0) return;
  const lines = facts(span).filter(([name]) => !["on", "from"].includes(name)).map(([name, value]) => `${name} ${value}`);
  tip.innerHTML = `<b>${escape(spanName(span))}</b>${lines.join("<br>")}`;
  const { offsetWidth, offsetHeight } = tip;
  tip.style.left = `${Math.min(event.clientX + 14, innerWidth - offsetWidth - 8)}px`;
  tip.style.top = `${event.clientY + 18 + offsetHeight > innerHeight ? event.clientY - offsetHeight - 10 : event.clientY + 18}px`;
}

overview.canvas.addEventListener("pointerdown", (event) => {
  const left = overview.canvas.getBoundingClientRect().left + GUTTER;
  const at = (event) => ((event.clientX - left) / (overview.width - GUTTER)) * duration;
  const from = at(event);
  const move = (event) => {
    const to = at(event);
    if (Math.abs(to - from) > duration / 400) show(Math.min(from, to), Math.max(from, to));
  };
  const up = (event) => {
    removeEventListener("pointermove", move);
    removeEventListener("pointerup", up);
    const [to, width] = [at(event), view.end - view.start];
    // A click moves what is shown there.
    if (Math.abs(to - from) <= duration / 400) show(to - width / 2, to + width / 2);
  };
  addEventListener("pointermove", move);
  addEventListener("pointerup", up);
});

byId("divider").addEventListener("pointerdown", (event) => {
  const panel = byId("panel");
  const [from, height] = [event.clientY, panel.clientHeight];
  const move = (event) => {
    panel.style.height = `${Math.min(innerHeight - 260, Math.max(60, height + from - event.clientY))}px`;
    redraw();
  };
  const up = () => {
    removeEventListener("pointermove", move);
    removeEventListener("pointerup", up);
  };
  addEventListener("pointermove", move);
  addEventListener("pointerup", up);
});

const KEYS = {
  w: () => zoom(0.7, momentAt(Math.max(pointer.x, GUTTER))),
  s: () => zoom(1 / 0.7, momentAt(Math.max(pointer.x, GUTTER))),
  a: () => pan((view.start - view.end) / 5),
  d: () => pan((view.end - view.start) / 5),
  ArrowUp: () => { view.scroll -= 3 * ROW; redraw(); },
  ArrowDown: () => { view.scroll += 3 * ROW; redraw(); },
  f: () => view.selected >= 0 && zoomTo(view.selected),
  c: () => setPath(!view.showsPath),
  t: () => byId("theme").click(),
  0: () => show(0, duration),
  "/": () => byId("search").focus(),
  "?": () => byId("help").showModal(),
  Escape: clear,
};
Object.assign(KEYS, { "+": KEYS.w, "=": KEYS.w, "-": KEYS.s, ArrowLeft: KEYS.a, ArrowRight: KEYS.d, Home: KEYS[0] });

addEventListener("keydown", (event) => {
  const isTyping = event.target.matches?.("input, dialog *");
  if (event.ctrlKey || event.metaKey || event.altKey || (isTyping && event.key !== "Escape")) return;
  const action = KEYS[event.key];
  if (action) {
    event.preventDefault();
    action();
  }
});

byId("search").addEventListener("input", (event) => find(event.target.value));
byId("search").addEventListener("keydown", (event) => {
  if (event.key === "Escape") event.target.blur();
  if (event.key !== "Enter") return;
  const next = nextMatch();
  if (next < 0) return;
  goTo(next);
  select(next);
});
byId("path").addEventListener("click", () => setPath(!view.showsPath));
byId("fit").addEventListener("click", () => show(0, duration));
byId("keys").addEventListener("click", () => byId("help").showModal());
byId("theme").addEventListener("click", () => setTheme(theme.isDark ? "light" : "dark"));
document.querySelectorAll("nav button").forEach((tab) => tab.addEventListener("click", () => showTab(tab.dataset.tab)));
document.body.addEventListener("click", (event) => {
  const target = event.target.closest("[data-span], [data-find], [data-sort]");
  if (!target) return;
  if (target.dataset.span) {
    goTo(Number(target.dataset.span));
    select(Number(target.dataset.span));
  }
  if (target.dataset.find) find(byId("search").value === target.dataset.find ? "" : target.dataset.find);
  if (target.dataset.sort) {
    sortedBy = target.dataset.sort;
    showTimes();
  }
});
// At once: what waits for the next frame would be shown stretched in this one.
new ResizeObserver(draw).observe(canvas);

byId("program").textContent = data.program;
byId("program").title = data.program;
byId("facts").textContent = `${time(duration)} · ${counted(workers.length, "processor", "processors")} · ${counted(spans.count, "span", "spans")}`;
byId("warning").textContent = data.warning ?? "";
byId("warning").hidden = !data.warning;
document.title = `${data.program} · maniple prof`;
layOut();
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
showSelected();
showTab("tasks");
draw();

/** What the page shows, for scripts. */
window.maniple = { data, spans, operations, view, drawn, path, find, select, show, zoom, spanAt, placeOf, spanName, mainSpan, draw };
