// What came after what.

/** Lists by number: `lists[first[n]] .. lists[first[n + 1]]` are those of `n`. */
function lists(count, keys, values) {
  const first = new Uint32Array(count + 1);
  for (const key of keys) first[key + 1]++;
  for (let n = 0; n < count; n++) first[n + 1] += first[n];
  const next = first.slice();
  const members = new Uint32Array(keys.length);
  keys.forEach((key, i) => (members[next[key]++] = values[i]));
  return { of: (n) => members.subarray(first[n], first[n + 1]) };
}

const earlierThan = lists(operations.count, columns["order.later"], columns["order.earlier"]);
const laterThan = lists(operations.count, columns["order.earlier"], columns["order.later"]);
const spansOf = (() => {
  const keys = [], values = [];
  for (let span = 0; span < spans.count; span++) {
    if (spans.operation[span] >= 0) {
      keys.push(spans.operation[span]);
      values.push(span);
    }
  }
  return lists(operations.count, keys, values);
})();

/** The span that stands for an operation: the outermost of its first; -1 if it has none. */
function mainSpan(operation) {
  let found = -1;
  for (const span of spansOf.of(operation)) {
    if (spans.kind(span) === kindOf.waiting) continue;
    if (found < 0 || spans.start[span] < spans.start[found]) found = span;
  }
  return found;
}

const MOST_NEIGHBOURS = 2000;

/** The operations with spans next to one, through events that are none. */
function neighbours(operation, order) {
  const seen = new Set([operation]), found = [], open = [operation];
  while (open.length > 0 && seen.size < MOST_NEIGHBOURS) {
    for (const next of order.of(open.pop())) {
      if (seen.has(next)) continue;
      seen.add(next);
      if (mainSpan(next) >= 0) found.push(next);
      else open.push(next);
    }
  }
  return found.sort((a, b) => spans.start[mainSpan(a)] - spans.start[mainSpan(b)]);
}

/** What an operation waited for, and who waited for it. */
function dependences(operation) {
  return { before: neighbours(operation, earlierThan), after: neighbours(operation, laterThan) };
}
