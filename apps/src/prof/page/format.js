// Numbers as people read them.

/** A time in nanoseconds, with its unit and three or four digits. */
function time(ns) {
  const size = Math.abs(ns);
  if (size < 1e3) return `${Math.round(ns)} ns`;
  const [amount, unit] = size < 1e6 ? [ns / 1e3, "µs"] : size < 1e9 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
  return `${amount.toFixed(Math.abs(amount) < 10 ? 2 : Math.abs(amount) < 100 ? 1 : 0)} ${unit}`;
}

/** A moment, as exactly as a step of so many nanoseconds deserves. */
function moment(ns, step) {
  const [scale, unit] = step < 1e3 && ns < 1e6 ? [1, "ns"] : step < 1e5 ? [1e3, "µs"] : step < 1e8 ? [1e6, "ms"] : [1e9, "s"];
  const digits = Math.max(0, Math.ceil(Math.log10(scale / step)));
  return `${(ns / scale).toFixed(digits)} ${unit}`;
}

function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; count >= 1024 && unit < units.length - 1; unit++) count /= 1024;
  return `${unit ? count.toFixed(1) : count} ${units[unit]}`;
}

function percent(part, whole) {
  return `${((100 * part) / Math.max(1, whole)).toFixed(1)}%`;
}

function counted(count, one, many) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** Text that can't be taken for markup. */
function escape(text) {
  return String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
}
