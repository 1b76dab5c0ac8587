// A plot over time: uPlot draws the lines; the caption lists them with their values as text.

import { count, latency, now } from "../formats.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { colour, colourVersion } from "../themes.js";

const HEIGHT = 150; // px
let library = null; // loaded with the first plot, as most views have none
const loadLibrary = () => (library ??= import("../vendor/uplot.js").then((module) => module.default));
const FONT = "11px 'Plex Sans', system-ui, sans-serif";

/**
 * at: seconds since 1970. lines: [{name, values, tone: '--in', isDashed?}]; null in values is a gap. format: formats a value.
 * syncKey: plots with the same key share their cursor. leastS: minimum width of the time axis in seconds.
 */
export function Plot({ title, at, lines, format, syncKey, height = HEIGHT, leastS = 0 }) {
  const place = useRef(null);
  const plot = useRef(null);
  const values = useRef(null);
  values.current = [at, ...lines.map((line) => line.values)];
  const [hovered, setHovered] = useState(null);
  const shape = lines.map(({ name }) => name).join();
  useEffect(() => {
    const watch = new ResizeObserver(([{ contentRect: { width } }]) => plot.current?.setSize({ width, height }));
    let isWanted = true;
    loadLibrary().then(
      (uPlot) => {
        if (!isWanted || !place.current) return; // another view is shown
        const how = { width: place.current.clientWidth, height, lines, format, syncKey, setHovered, leastS };
        plot.current = new uPlot(options(how), values.current, place.current);
        watch.observe(place.current);
      },
      () => (library = null), // the console is unreachable: try again with the next plot
    );
    return () => {
      isWanted = false;
      watch.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [colourVersion.value, shape]);
  useEffect(() => plot.current?.setData(values.current), [at, lines]);
  return html`
    <figure class="plot" aria-label=${title}>
      <figcaption>
        <strong>${title}</strong>
        ${lines.map((line) => html`<${Key} key=${line.name} line=${line} index=${hovered} format=${format} />`)}
        <span class="when">${hovered !== null && at[hovered] ? new Date(at[hovered] * 1000).toLocaleTimeString("en-GB") : ""}</span>
      </figcaption>
      <div ref=${place} class="canvas" aria-hidden="true" style=${{ height: `${height}px` }}></div>
    </figure>
  `;
}

/** A line's name and its value under the cursor, else its last known value. */
function Key({ line, index, format }) {
  const value = index === null ? line.values.findLast((one) => one != null) : line.values[index];
  return html`
    <span class="key" style=${{ "--tone": `var(${line.tone})` }} data-dashed=${line.isDashed ? "" : undefined}>
      ${line.name} <b>${format(value)}</b>
    </span>
  `;
}

function options({ width, height, lines, format, syncKey, setHovered, leastS }) {
  const soft = colour("--soft");
  const grid = { stroke: colour("--line"), width: 1 };
  const axis = { stroke: soft, font: FONT, grid, ticks: { show: false } };
  return {
    width,
    height,
    padding: [8, 18, 0, 0],
    legend: { show: false },
    cursor: {
      sync: syncKey ? { key: syncKey } : undefined,
      y: false,
      drag: { x: false, y: false },
      points: { size: 6 },
    },
    scales: {
      x: { time: true, range: ({ data: [times] }) => timeRange(times, leastS) },
      y: { range: (_, low, high) => [0, Math.max(high ?? 0, low ?? 0, 1) * 1.08] },
    },
    axes: [
      { ...axis, space: 70, size: 26, values: TIME_FORMATS },
      { ...axis, space: 32, size: labelWidth, incrs: stepsOf(format), values: (_, ticks) => ticks.map((tick) => (tick ? format(tick) : "0")) },
    ],
    series: [{}, ...lines.map(seriesOf)],
    hooks: { setCursor: [(uPlot) => setHovered(uPlot.cursor.idx ?? null)] },
  };
}

const DECIMAL_STEPS = [-3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9].flatMap((power) => [1, 2, 5].map((n) => Number(`${n}e${power}`)));
const SECONDS = [10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21_600, 43_200, 86_400, 172_800, 604_800];

/** Return the steps between ticks of the value axis that `format` writes exactly: whole numbers, ms to minutes, or tenths. */
function stepsOf(format) {
  if (format === latency) return [...DECIMAL_STEPS.filter((step) => step <= 5000), ...SECONDS.map((n) => n * 1000)];
  return DECIMAL_STEPS.filter((step) => step >= (format === count ? 1 : 0.1));
}

/** Return the width in px that the labels of the value axis need. */
const labelWidth = (_, labels) => Math.max(52, ...(labels ?? []).map((label) => label.length * 6.2 + 14));

/** Return the range of the time axis: up to the last value, and from the first one or earlier. */
function timeRange(times, leastS) {
  const last = times.at(-1) ?? now() / 1000;
  return [Math.min(times[0] ?? last, last - Math.max(leastS, 1)), last];
}

/** Return the values without neighbours, which are drawn as points because no line shows them. */
function isolated({ data }, series) {
  const values = data[series];
  return values.flatMap((value, i) =>
    value != null && values[i - 1] == null && values[i + 1] == null ? [i] : [],
  );
}

const seriesOf = ({ name, tone, isDashed }) => ({
  label: name,
  stroke: colour(tone),
  width: 1.5,
  dash: isDashed ? [5, 4] : undefined,
  points: { show: true, size: 3.5, filter: isolated },
  spanGaps: false,
});

const TIME_FORMATS = [
  // [minimum seconds between ticks, format, then what is added at the start of a larger unit]
  [86400, "{D} {MMM}", null, null, null, null, null, null, 1],
  [3600, "{HH}:{mm}", "\n{D} {MMM}", null, "\n{D} {MMM}", null, null, null, 1],
  [60, "{HH}:{mm}", null, null, null, null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1],
];
