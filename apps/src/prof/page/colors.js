// Colors: tasks have hues, the runtime's work earth tones, waiting and sleep hardly any.

const RUNTIME_COLORS = {
  analysis: "#c99400", mapping: "#e8710a", mapper: "#a14a00", copy: "#0c8599", fill: "#66a5ad", reduction: "#3b5bdb", runtime: "#8d99a8",
};
const ACTIVITY_COLORS = {
  tasks: "#2f9e44", analysis: "#c99400", mapping: "#e8710a", mapper: "#a14a00", copies: "#0c8599", other: "#8d99a8",
};
const TASK_HUES = [142, 212, 338, 275, 178, 18, 52, 240, 96, 310, 195, 0];

/** The colors of the page's theme, for what is drawn. */
let theme = {};

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const isDark = document.documentElement.dataset.theme === "dark";
  const get = (name) => style.getPropertyValue(`--${name}`).trim();
  theme = {
    isDark, paper: get("paper"), ink: get("ink"), faint: get("faint"), line: get("line"), shade: get("shade"), accent: get("accent"),
    waiting: isDark ? "#39424f" : "#d9dfe8", asleep: isDark ? "#1f252f" : "#f0f2f6", before: isDark ? "#ffd43b" : "#e67700", after: isDark ? "#74c0fc" : "#1971c2",
  };
  labelColors = data.labels.map(labelColor);
}

/** Tasks in the order of the time that they take: the largest have the most different hues. */
const taskRank = new Map(data.times.filter((times) => times.kind === kindOf.task).map((times, rank) => [times.name, rank]));
let labelColors = [];

function labelColor(label) {
  const kind = data.kinds[label.kind];
  if (kind === "waiting") return theme.waiting;
  if (kind === "asleep") return theme.asleep;
  if (kind !== "task") return RUNTIME_COLORS[kind];
  const rank = taskRank.get(label.name) ?? 0;
  const [hue, round] = [TASK_HUES[rank % TASK_HUES.length], Math.floor(rank / TASK_HUES.length) % 3];
  return `hsl(${hue} ${theme.isDark ? 52 : 58}% ${(theme.isDark ? 46 : 50) + 9 * round}%)`;
}

function activityColor(name) {
  return ACTIVITY_COLORS[name] ?? (name === "waiting" ? theme.waiting : theme.asleep);
}

/** The color of a row of the table of times. */
function timesColor(times) {
  const label = data.labels.findIndex((label) => label.kind === times.kind && label.name === times.name);
  return labelColors[label];
}
