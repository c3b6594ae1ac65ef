// What is shown: a range of time, a place among the rows, a selection.

const SHORTEST_RANGE = 20;

const view = {
  start: 0,
  end: duration,
  scroll: 0,
  /** The selected span, or -1, with the operations before and after its own. */
  selected: -1,
  before: [],
  after: [],
  /** Labels that the search found, or nothing. */
  matches: null,
  /** Whether the critical path is shown. */
  showsPath: false,
  hovered: -1,
};

/** Shows a range of time, as far as there is one. */
function show(start, end) {
  const width = Math.min(Math.max(end - start, SHORTEST_RANGE), duration);
  view.start = Math.min(Math.max(start, 0), duration - width);
  view.end = view.start + width;
  redraw();
}

/** Makes the range so many times as long, around a moment. */
function zoom(factor, around) {
  const width = Math.min(Math.max((view.end - view.start) * factor, SHORTEST_RANGE), duration);
  const part = (around - view.start) / (view.end - view.start);
  show(around - part * width, around + (1 - part) * width);
}

function pan(time) {
  show(view.start + time, view.end + time);
}

/** Shows a span with something around it. */
function zoomTo(span) {
  const around = Math.max(spans.duration[span] * 1.5, SHORTEST_RANGE);
  show(spans.start[span] - around, spans.end(span) + around);
  reveal(span);
}

/** Moves there if a span can't be seen. */
function goTo(span) {
  const width = view.end - view.start;
  const middle = (spans.start[span] + spans.end(span)) / 2;
  if (spans.end(span) < view.start || spans.start[span] > view.end) show(middle - width / 2, middle + width / 2);
  if (spans.duration[span] < width / 2000) show(middle - spans.duration[span] * 50, middle + spans.duration[span] * 50);
  reveal(span);
}

function select(span) {
  view.selected = span;
  const operation = span < 0 ? -1 : spans.operation[span];
  const found = operation < 0 ? { before: [], after: [] } : dependences(operation);
  view.before = found.before.map(mainSpan);
  view.after = found.after.map(mainSpan);
  showSelected();
  redraw();
}

/** Finds labels by a part of their name. */
function search(text) {
  const wanted = text.trim().toLowerCase();
  view.matches = wanted ? new Set() : null;
  data.labels.forEach((label, number) => {
    // Of the runtime's work, `kind: name`: so that the kind alone finds all of it, and a task's name the task.
    const names = [labelName(label), `${data.kinds[label.kind]}: ${label.name}`];
    if (wanted && names.some((name) => name.toLowerCase().includes(wanted))) view.matches.add(number);
  });
  redraw();
}

/** The spans that the search found. */
function countMatches() {
  let count = 0;
  for (let span = 0; span < spans.count; span++) if (view.matches.has(spans.label[span])) count++;
  return count;
}

/** The next span that the search found, after the selected one or after the beginning of what is shown. */
function nextMatch() {
  const after = view.selected >= 0 ? spans.start[view.selected] : view.start - 1;
  let next = -1, first = -1;
  for (let span = 0; span < spans.count; span++) {
    if (!view.matches?.has(spans.label[span]) || span === view.selected) continue;
    if (first < 0 || spans.start[span] < spans.start[first]) first = span;
    if (spans.start[span] > after && (next < 0 || spans.start[span] < spans.start[next])) next = span;
  }
  return next >= 0 ? next : first;
}
