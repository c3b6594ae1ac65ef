// The profile as `page_data.rs` gives it, unpacked into typed arrays.

/** Reads the columns that `columns.rs` packed: LEB128, differences in zigzag form. */
function unpack({ directory, bytes }) {
  const text = atob(bytes);
  const columns = {};
  let at = 0;
  for (const { name, count } of directory) {
    const column = new Float64Array(count);
    for (let i = 0, before = 0; i < count; i++) {
      let number = 0, scale = 1, byte;
      do {
        byte = text.charCodeAt(at++);
        number += (byte & 0x7f) * scale;
        scale *= 128;
      } while (byte & 0x80);
      before += number % 2 ? -(number + 1) / 2 : number / 2;
      column[i] = before;
    }
    columns[name] = column;
  }
  return columns;
}

const data = JSON.parse(document.getElementById("profile").textContent);
const columns = unpack(data.columns);
data.columns = null;

const kindOf = Object.fromEntries(data.kinds.map((name, kind) => [name, kind]));
const duration = Math.max(1, data.duration);

/** All spans, lane by lane; within a lane by their beginning, those that contain others first. */
const spans = {
  count: columns["span.start"].length,
  start: columns["span.start"],
  duration: columns["span.duration"],
  label: Uint32Array.from(columns["span.label"]),
  index: Uint32Array.from(columns["span.index"]),
  /** -1 for none. */
  operation: Int32Array.from(columns["span.operation"], (operation) => operation - 1),
  depth: Uint8Array.from(columns["span.depth"], (depth) => Math.min(depth, 255)),
  lane: new Uint32Array(columns["span.start"].length),
  end: (span) => spans.start[span] + spans.duration[span],
  kind: (span) => data.labels[spans.label[span]].kind,
};

/** What came after what, who launched whom. Operations without spans are events that others wait for. */
const operations = {
  count: columns["operation.launched"].length,
  launched: columns["operation.launched"],
  by: columns["operation.by"],
  ready: columns["operation.ready"],
  bytes: columns["operation.bytes"],
};

/** Whether anything was done in a span. */
const isWork = (span) => spans.kind(span) !== kindOf.asleep && spans.kind(span) !== kindOf.waiting;

/** The spans of one row, which do not overlap, with the time that work takes up to each. */
function row(members) {
  const busy = new Float64Array(members.length + 1);
  members.forEach((span, i) => (busy[i + 1] = busy[i] + (isWork(span) ? spans.duration[span] : 0)));
  return { spans: Uint32Array.from(members), busy };
}

const lanes = (() => {
  let first = 0, slice = 0;
  return data.lanes.map((lane, number) => {
    const rows = [];
    for (let span = first; span < first + lane.spans; span++) {
      spans.lane[span] = number;
      (rows[spans.depth[span]] ??= []).push(span);
    }
    const made = { ...lane, first, rows: Array.from(rows, (members) => row(members ?? [])), slices: sliceList(slice, lane.slices) };
    first += lane.spans;
    slice += lane.slices;
    return made;
  });
})();
const workers = lanes.filter((lane) => lane.is_worker);

/** What a lane did at each moment, with sums up to every 64th slice, so that the time of an activity between two moments is found quickly. */
function sliceList(first, count) {
  const start = columns["slice.start"].subarray(first, first + count);
  const activity = Uint8Array.from(columns["slice.activity"].subarray(first, first + count));
  const kinds = data.activities.length;
  const sums = new Float64Array((Math.floor(count / 64) + 1) * kinds);
  const running = new Float64Array(kinds);
  for (let i = 0; i < count; i++) {
    if (i % 64 === 0) sums.set(running, (i / 64) * kinds);
    running[activity[i]] += (i + 1 < count ? start[i + 1] : duration) - start[i];
  }
  if (count % 64 === 0) sums.set(running, (count / 64) * kinds);
  return { start, activity, sums };
}

/** Adds, with a sign, how long a lane spent with each activity up to a moment. */
function addActivities({ start, activity, sums }, moment, sign, into) {
  const kinds = into.length;
  const at = upperBound(start, moment) - 1;
  if (at < 0) return;
  const block = Math.floor(at / 64);
  for (let kind = 0; kind < kinds; kind++) into[kind] += sign * sums[block * kinds + kind];
  for (let i = block * 64; i < at; i++) into[activity[i]] += sign * (start[i + 1] - start[i]);
  into[activity[at]] += sign * (moment - start[at]);
}

/** Transfers between the same memories, in rows so that none overlap. */
const channels = (() => {
  let first = 0;
  return data.channels.map((channel) => {
    const rows = [];
    for (let i = first; i < first + channel.transfers; i++) {
      const span = columns["transfer.span"][i];
      const free = rows.find((members) => spans.end(members[members.length - 1]) <= spans.start[span]);
      if (free) free.push(span);
      else rows.push([span]);
    }
    first += channel.transfers;
    return { ...channel, rows: rows.map(row) };
  });
})();

const memories = (() => {
  let first = 0;
  return data.memories.map((memory) => {
    const last = first + memory.changes;
    const made = { ...memory, time: columns["memory.time"].subarray(first, last), used: columns["memory.used"].subarray(first, last) };
    first = last;
    return { ...made, most: made.used.reduce((most, used) => Math.max(most, used), 0) };
  });
})();

/** The critical path: from when to when, and in which span; -1 where nothing was done. */
const path = {
  start: columns["path.start"],
  end: columns["path.end"],
  span: Int32Array.from(columns["path.span"], (span) => span - 1),
};

/** The first place in a sorted list whose number is greater. */
function upperBound(sorted, number, low = 0, high = sorted.length) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle] <= number) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first span of a row that ends after a moment. */
function firstEndingAfter({ spans: members }, moment, low = 0) {
  let high = members.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (spans.end(members[middle]) <= moment) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first span of a row that begins at a moment or later. */
function firstStartingFrom({ spans: members }, moment, low = 0) {
  let high = members.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (spans.start[members[middle]] < moment) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The point of a label's domain with a rank in row-major order. */
function point({ lo, hi }, rank) {
  const found = [];
  for (let d = lo.length - 1; d >= 0; d--) {
    const extent = hi[d] - lo[d] + 1;
    found.unshift(lo[d] + (rank % extent));
    rank = Math.floor(rank / extent);
  }
  return found;
}

/** What a label, or a row of the table of times, is called. */
function labelName({ kind, name }) {
  const before = { analysis: "analysis of ", mapping: name === "mapping" ? "" : "mapping of ", mapper: "mapper: " }[data.kinds[kind]];
  return (before ?? "") + name;
}

/** What a span is called. */
function spanName(span) {
  const label = data.labels[spans.label[span]];
  const where = label.domain ? `[${point(label.domain, spans.index[span]).join(",")}]` : "";
  return labelName(label) + where;
}
