// A plot over time: uPlot draws the lines, the caption says in text what they are and how high they stand.

import { now } from "../formats.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { colour, drawn } from "../themes.js";

const HEIGHT = 150; // px
let library = null; // is there as soon as something is drawn: most views draw nothing
const drawing = () => (library ??= import("../vendor/uplot.js").then((module) => module.default));
const FONT = "11px 'Plex Sans', system-ui, sans-serif";

/**
 * at: seconds since 1970. lines: [{name, values, tone: '--in', isDashed?}]; null in values is a gap.
 * write: a value as text. together: plots of one name share their pointer. leastS: so many seconds at least are drawn.
 */
export function Plot({ title, at, lines, write, together, height = HEIGHT, leastS = 0 }) {
  const place = useRef(null);
  const plot = useRef(null);
  const values = useRef(null);
  values.current = [at, ...lines.map((line) => line.values)];
  const [pointed, point] = useState(null);
  const shape = lines.map(({ name }) => name).join();
  useEffect(() => {
    const watch = new ResizeObserver(([{ contentRect: { width } }]) => plot.current?.setSize({ width, height }));
    let isWanted = true;
    drawing().then(
      (uPlot) => {
        if (!isWanted || !place.current) return; // another view is shown by now
        const how = { width: place.current.clientWidth, height, lines, write, together, point, leastS };
        plot.current = new uPlot(options(how), values.current, place.current);
        watch.observe(place.current);
      },
      () => (library = null), // the console is away: the next time
    );
    return () => {
      isWanted = false;
      watch.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [drawn.value, shape]);
  useEffect(() => plot.current?.setData(values.current), [at, lines]);
  return html`
    <figure class="plot" aria-label=${title}>
      <figcaption>
        <strong>${title}</strong>
        ${lines.map((line) => html`<${Key} key=${line.name} line=${line} index=${pointed} write=${write} />`)}
        <span class="when">${pointed !== null && at[pointed] ? new Date(at[pointed] * 1000).toLocaleTimeString("en-GB") : ""}</span>
      </figcaption>
      <div ref=${place} class="canvas" aria-hidden="true" style=${{ height: `${height}px` }}></div>
    </figure>
  `;
}

/** The value under the pointer, else the last one that is known. */
function Key({ line, index, write }) {
  const value = index === null ? line.values.findLast((one) => one != null) : line.values[index];
  return html`
    <span class="key" style=${{ "--tone": `var(${line.tone})` }} data-dashed=${line.isDashed ? "" : undefined}>
      ${line.name} <b>${write(value)}</b>
    </span>
  `;
}

function options({ width, height, lines, write, together, point, leastS }) {
  const soft = colour("--soft");
  const grid = { stroke: colour("--line"), width: 1 };
  const axis = { stroke: soft, font: FONT, grid, ticks: { show: false } };
  return {
    width,
    height,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: {
      sync: together ? { key: together } : undefined,
      y: false,
      drag: { x: false, y: false },
      points: { size: 6 },
    },
    scales: {
      x: { time: true, range: ({ data: [times] }) => stretch(times, leastS) },
      y: { range: (_, low, high) => [0, Math.max(high ?? 0, low ?? 0, 1) * 1.08] },
    },
    axes: [
      { ...axis, space: 70, size: 26, values: TIMES },
      { ...axis, space: 32, size: 52, values: (_, ticks) => ticks.map(write) },
    ],
    series: [{}, ...lines.map(drawnLine)],
    hooks: { setCursor: [(made) => point(made.cursor.idx ?? null)] },
  };
}

/** From when to when: up to the last value, and as far back as there are any, or longer. */
function stretch(times, leastS) {
  const last = times.at(-1) ?? now() / 1000;
  return [Math.min(times[0] ?? last, last - Math.max(leastS, 1)), last];
}

/** Values without a neighbour on either side, which no line would show. */
function alone({ data }, series) {
  const values = data[series];
  return values.flatMap((value, i) =>
    value != null && values[i - 1] == null && values[i + 1] == null ? [i] : [],
  );
}

const drawnLine = ({ name, tone, isDashed }) => ({
  label: name,
  stroke: colour(tone),
  width: 1.5,
  dash: isDashed ? [5, 4] : undefined,
  points: { show: true, size: 3.5, filter: alone },
  spanGaps: false,
});

const TIMES = [
  // [from this many seconds between ticks, how, then what is added where a larger unit begins]
  [86400, "{D} {MMM}", null, null, null, null, null, null, 1],
  [3600, "{HH}:{mm}", "\n{D} {MMM}", null, "\n{D} {MMM}", null, null, null, 1],
  [60, "{HH}:{mm}", null, null, null, null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1],
];
