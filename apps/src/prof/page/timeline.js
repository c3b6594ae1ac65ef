// Drawing: the strip of everything, and below it the rows of what is shown.

const GUTTER = 132, ROW = 17, GAP = 7, AXIS = 24, CURVE = 76, MEMORY = 44;

/** Where each row is: from the top of all rows, which scroll below the axis and the curve. */
const tracks = [];
let tracksHeight = 0;

function layOut() {
  tracks.length = 0;
  let top = 6;
  const add = (track, height) => {
    tracks.push({ ...track, top, height });
    top += height + GAP;
  };
  const nodes = new Set(lanes.map((lane) => lane.node)).size;
  let node = null;
  for (const lane of lanes) {
    if (nodes > 1 && lane.is_worker && lane.node !== node) add({ heading: `node ${(node = lane.node)}` }, 14);
    add({ lane, rows: lane.rows, name: lane.name }, Math.max(1, lane.rows.length) * ROW);
  }
  for (const channel of channels) add({ rows: channel.rows, name: channel.name, note: bytes(channel.bytes) }, channel.rows.length * ROW);
  for (const memory of memories) add({ memory, name: memory.name, note: `most ${bytes(memory.most)}` }, MEMORY);
  tracksHeight = top;
}

/** A canvas and what is needed to draw on it sharply. */
function surface(canvas) {
  const pen = canvas.getContext("2d");
  const made = { canvas, pen, width: 0, height: 0 };
  made.fit = () => {
    const ratio = devicePixelRatio || 1;
    [made.width, made.height] = [canvas.clientWidth, canvas.clientHeight];
    const [wide, high] = [Math.round(made.width * ratio), Math.round(made.height * ratio)];
    if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, made.width, made.height);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
  };
  return made;
}

const timeline = surface(document.getElementById("timeline"));
const overview = surface(document.getElementById("overview"));

/** What was drawn last, for whoever wants to know. */
const drawn = { spans: 0, columns: 0, frames: 0 };

const perPixel = () => (view.end - view.start) / Math.max(1, timeline.width - GUTTER);
const xOf = (moment) => GUTTER + (moment - view.start) / perPixel();
const momentAt = (x) => view.start + (x - GUTTER) * perPixel();
const tracksTop = () => AXIS + CURVE;

function draw() {
  drawn.spans = drawn.columns = 0;
  drawn.frames++;
  timeline.fit();
  view.scroll = Math.max(0, Math.min(view.scroll, tracksHeight - (timeline.height - tracksTop())));
  const { width, height } = timeline;
  const visible = tracks.map((track) => [track, tracksTop() + track.top - view.scroll]).filter(([track, top]) => top < height && top + track.height > tracksTop());
  clipped(0, () => visible.forEach(([track, top]) => drawName(track, top)));
  clipped(GUTTER, () => {
    visible.forEach(([track, top]) => drawTrack(track, top));
    if (view.showsPath) drawPath();
    drawSelection();
  });
  drawCurve(timeline, GUTTER, AXIS, width - GUTTER, CURVE - 6, view.start, view.end);
  drawAxis();
  drawOverview();
}

/** Draws below the axis and the curve, and not further left than this. */
function clipped(left, drawing) {
  const { pen, width, height } = timeline;
  pen.save();
  pen.beginPath();
  pen.rect(left, tracksTop(), width - left, height - tracksTop());
  pen.clip();
  drawing();
  pen.restore();
}

function drawName(track, top) {
  const { pen } = timeline;
  pen.fillStyle = track.heading ? theme.faint : theme.ink;
  pen.fillText(track.heading ?? track.name, 8, top + (track.heading ? 7 : ROW / 2), GUTTER - 14);
  pen.fillStyle = theme.faint;
  if (track.note && track.height > ROW * 1.6) pen.fillText(track.note, 8, top + ROW * 1.4, GUTTER - 14);
}

function drawTrack(track, top) {
  const { pen, width } = timeline;
  if (track.heading) return;
  pen.fillStyle = theme.shade;
  pen.fillRect(GUTTER, top, width - GUTTER, track.height);
  if (track.memory) drawMemory(track.memory, top, track.height);
  else track.rows.forEach((row, depth) => drawRow(row, top + depth * ROW));
}

/** Draws the spans of a row: each that is wide enough by itself, and of the others one bar a pixel, as high as they are dense. */
function drawRow(row, top) {
  const { pen, width } = timeline;
  const scale = perPixel();
  const members = row.spans;
  for (let i = firstEndingAfter(row, view.start); i < members.length; ) {
    const span = members[i];
    const left = Math.max(xOf(spans.start[span]), GUTTER);
    if (left >= width) return;
    const right = Math.min(xOf(spans.end(span)), width);
    if (right - left >= 1.5) {
      drawSpan(span, left, top, right - left);
      i++;
      continue;
    }
    const pixel = Math.floor(left);
    const next = Math.max(firstStartingFrom(row, momentAt(pixel + 1), i), i + 1);
    const busy = Math.min(1, (row.busy[next] - row.busy[i]) / scale);
    const high = (ROW - 2) * Math.max(0.15, busy);
    const label = spans.label[mostTelling(members, i, next)];
    pen.globalAlpha = isFaint(label) ? 0.15 : 1;
    pen.fillStyle = labelColors[label];
    pen.fillRect(pixel, top + ROW - 2 - high, 1, high);
    pen.globalAlpha = 1;
    drawn.columns++;
    i = next;
  }
}

/** The longest of some spans, or of sixteen among them if there are more; work before sleep, and what the search found before all. */
function mostTelling(members, first, next) {
  const worth = (span) => (isFaint(spans.label[span]) ? 0 : 1e24) + (isWork(span) ? 1e18 : 0) + spans.duration[span];
  let best = members[first];
  for (let i = first, step = Math.max(1, Math.floor((next - first) / 16)); i < next; i += step) {
    if (worth(members[i]) > worth(best)) best = members[i];
  }
  return best;
}

const isFaint = (label) => view.matches !== null && !view.matches.has(label);

function drawSpan(span, left, top, wide) {
  const { pen } = timeline;
  const label = spans.label[span];
  pen.globalAlpha = isFaint(label) ? 0.15 : 1;
  pen.fillStyle = labelColors[label];
  pen.fillRect(left, top, wide > 3 ? wide - 0.5 : wide, ROW - 2);
  if (wide > 34) {
    const kind = data.kinds[data.labels[label].kind];
    pen.fillStyle = kind === "waiting" || kind === "asleep" ? theme.faint : "#fff";
    fitText(spanName(span), left + 4, top + (ROW - 2) / 2, wide - 7);
  }
  pen.globalAlpha = 1;
  drawn.spans++;
}

/** Writes as much of a text as there is room for. */
function fitText(text, x, y, room) {
  const { pen } = timeline;
  const fits = Math.floor(room / 5.7);
  if (fits >= 3) pen.fillText(text.length <= fits ? text : `${text.slice(0, fits - 1)}…`, x, y);
}

/** How much of the workers' time went where, stacked, for each pixel. */
function drawCurve({ pen }, left, top, wide, high, start, end) {
  pen.fillStyle = theme.shade;
  pen.fillRect(left, top, wide, high);
  const activities = data.activities.length;
  const step = Math.max(workers.length > 256 ? 3 : 1, 1);
  const scale = (end - start) / Math.max(1, wide);
  let before = new Float64Array(activities);
  for (const worker of workers) addActivities(worker.slices, start, 1, before);
  for (let x = 0; x < wide; x += step) {
    const until = Math.min(start + (x + step) * scale, duration);
    const sums = new Float64Array(activities);
    for (const worker of workers) addActivities(worker.slices, until, 1, sums);
    const whole = Math.max(1e-9, step * scale * workers.length);
    let bottom = top + high;
    for (let activity = 0; activity < activities; activity++) {
      const part = ((sums[activity] - before[activity]) / whole) * high;
      const name = data.activities[activity];
      if (name !== "idle" && part > 0) {
        pen.fillStyle = activityColor(name);
        pen.fillRect(left + x, bottom - part, step, part);
      }
      bottom -= part;
    }
    before = sums;
  }
}

function drawAxis() {
  const { pen, width } = timeline;
  pen.clearRect(0, 0, width, AXIS);
  pen.clearRect(0, AXIS, GUTTER, CURVE);
  pen.fillStyle = theme.faint;
  pen.fillText("processors' time", 8, AXIS + 10, GUTTER - 14);
  pen.fillText(`shown: ${time(view.end - view.start)}`, 8, AXIS / 2, GUTTER - 14);
  const step = tickStep(perPixel() * 110);
  for (let tick = Math.ceil(view.start / step) * step; tick <= view.end; tick += step) {
    const x = Math.round(xOf(tick)) + 0.5;
    pen.fillStyle = theme.faint;
    pen.fillText(moment(tick, step), x + 4, AXIS / 2);
    pen.globalAlpha = 0.35;
    pen.fillRect(x, 4, 0.7, timeline.height);
    pen.globalAlpha = 1;
  }
}

/** The least round number that is as large: 1, 2 or 5 and zeros. */
function tickStep(least) {
  const ten = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((digit) => digit * ten).find((step) => step >= least);
}

/** The bytes in use, as steps; for each pixel the most. */
function drawMemory({ time: times, used, most }, top, high) {
  const { pen, width } = timeline;
  pen.fillStyle = theme.isDark ? "#5f7fbf" : "#91a7d8";
  let at = upperBound(times, view.start) - 1;
  for (let x = GUTTER; x < width; x++) {
    const until = momentAt(x + 1);
    let level = at >= 0 ? used[at] : 0;
    const next = upperBound(times, until, Math.max(at, 0));
    for (let i = Math.max(at + 1, next - 64); i < next; i++) level = Math.max(level, used[i]);
    at = next - 1;
    const part = most > 0 ? (level / most) * (high - 2) : 0;
    pen.fillRect(x, top + high - part, 1, part);
  }
}

/** The place of a span among the rows; nothing if it is in none. */
function placeOf(span) {
  const lane = lanes[spans.lane[span]];
  const track = tracks.find((track) => track.lane === lane);
  const top = tracksTop() + track.top - view.scroll + spans.depth[span] * ROW;
  return { left: xOf(spans.start[span]), right: xOf(spans.end(span)), top, middle: top + ROW / 2 - 1 };
}

/** Scrolls so that a span's row can be seen. */
function reveal(span) {
  const { top } = placeOf(span);
  if (top < tracksTop()) view.scroll -= tracksTop() - top + 20;
  if (top + ROW > timeline.height) view.scroll += top + ROW - timeline.height + 20;
  redraw();
}

function outline(span, color, thick) {
  const { pen } = timeline;
  const { left, right, top } = placeOf(span);
  pen.strokeStyle = color;
  pen.lineWidth = thick;
  pen.strokeRect(left - 1, top - 0.5, Math.max(right - left, 2) + 1.5, ROW - 1);
}

/** The selected span, and lines from what it waited for and to who waited for it. */
function drawSelection() {
  if (view.hovered >= 0) outline(view.hovered, theme.ink, 1);
  if (view.selected < 0) return;
  const own = placeOf(view.selected);
  const link = (span, color, toOwn) => {
    const other = placeOf(span);
    const [from, to] = toOwn ? [other, own] : [own, other];
    line(from.right, from.middle, to.left, to.middle, color, 1.2);
    outline(span, color, 1.5);
  };
  view.before.forEach((span) => link(span, theme.before, true));
  view.after.forEach((span) => link(span, theme.after, false));
  outline(view.selected, theme.accent, 2.5);
}

function line(x0, y0, x1, y1, color, thick) {
  const { pen } = timeline;
  const bend = Math.max(12, Math.min(80, Math.abs(x1 - x0) / 2));
  pen.strokeStyle = color;
  pen.lineWidth = thick;
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
  pen.stroke();
}

/** The critical path: a line below what was done, and from one to the next. */
function drawPath() {
  const { pen, width } = timeline;
  pen.fillStyle = theme.accent;
  let last = null, lastPixel = -1;
  for (let i = Math.max(0, upperBound(path.start, view.start) - 1); i < path.span.length && path.start[i] <= view.end; i++) {
    if (path.span[i] < 0) continue;
    const place = placeOf(path.span[i]);
    const [left, right] = [xOf(path.start[i]), xOf(path.end[i])];
    if (Math.floor(right) > lastPixel || right - left > 1) {
      pen.fillRect(Math.max(left, GUTTER), place.top + ROW - 4, Math.max(1, Math.min(right, width) - Math.max(left, GUTTER)), 3);
      if (last && Math.abs(last.middle - place.middle) > 1) line(last.right, last.middle + ROW / 2 - 3, left, place.middle + ROW / 2 - 3, theme.accent, 1);
      lastPixel = Math.floor(right);
    }
    last = { middle: place.middle, right };
  }
}

function drawOverview() {
  overview.fit();
  const { pen, width, height } = overview;
  drawCurve(overview, GUTTER, 3, width - GUTTER, height - 6, 0, duration);
  const x = (moment) => GUTTER + (moment / duration) * (width - GUTTER);
  pen.fillStyle = theme.isDark ? "#0008" : "#fff9";
  pen.fillRect(GUTTER, 0, x(view.start) - GUTTER, height);
  pen.fillRect(x(view.end), 0, width - x(view.end), height);
  pen.strokeStyle = theme.accent;
  pen.lineWidth = 1.5;
  pen.strokeRect(x(view.start) + 0.5, 1, Math.max(2, x(view.end) - x(view.start) - 1), height - 2);
  pen.fillStyle = theme.faint;
  pen.fillText("everything", 8, 14, GUTTER - 14);
  pen.fillText(time(duration), 8, 30, GUTTER - 14);
}

/** The span at a place of the timeline, or -1: the nearest within two pixels. */
function spanAt(x, y) {
  if (x < GUTTER || y < tracksTop()) return -1;
  const inside = y - tracksTop() + view.scroll;
  const track = tracks.find(({ top, height }) => top <= inside && inside < top + height);
  const row = track?.rows?.[Math.floor((inside - track.top) / ROW)];
  if (!row) return -1;
  const moment = momentAt(x), reach = 2 * perPixel();
  const at = firstEndingAfter(row, moment - reach);
  let best = -1, distance = Infinity;
  for (let i = at; i < Math.min(at + 64, row.spans.length) && spans.start[row.spans[i]] <= moment + reach; i++) {
    const span = row.spans[i];
    const off = Math.max(spans.start[span] - moment, moment - spans.end(span), 0);
    if (off < distance) [best, distance] = [span, off];
  }
  return best;
}

let isDrawingSoon = false;

function redraw() {
  if (isDrawingSoon) return;
  isDrawingSoon = true;
  requestAnimationFrame(() => {
    isDrawingSoon = false;
    draw();
  });
}
