// What links did, as charts by uPlot.
//
// 1. A Record keeps a row a second of every path, from the portal's history on. 2. The large chart stacks what all links carry,
// received above and sent below, or shows round trip, queue or loss of each; events are marks on it. 3. Each link has a small one.

const HOUR = 3600;
/** What the large chart can show: title, and where it is in a row. */
export const METRICS = { rate: "Rate", rtt: "Round trip", queue: "Queue", loss: "Loss" };
export const UNITS = { rate: "Mbit/s, received above, sent below", rtt: "ms", queue: "ms", loss: "% of packets" };
export const SPANS = { 120: "2 min", 600: "10 min", 3600: "1 h", 86400: "1 day" };
const MARKED = { cut: "cut", link_down: "cut", comeback: "well", degraded: "degraded", fade: "fading", fade_over: "well", recovered: "well", cap_reached: "fading", paused: "idle", resumed: "idle" };

/** Rows of paths by the second, or by the minute. Empty at first. */
export class Record {
  constructor() { this.step = 1; this.times = []; this.paths = new Map(); }

  /** Begins with what the portal remembers. */
  load(history) {
    this.step = history.step_s;
    const at = Object.fromEntries(history.metrics.map((name, index) => [name, index]));
    const rows = Math.max(0, ...history.paths.map((path) => path.columns[0].length));
    const end = Math.floor(history.end_unix_ms / 1000 / this.step) * this.step;
    this.times = Array.from({ length: rows }, (_, row) => end - (rows - 1 - row) * this.step);
    this.paths = new Map(history.paths.map(({ peer, path, place, columns }) => {
      const column = (name, scale) => columns[at[name]].map((figure) => (figure == null ? null : figure * scale));
      return [key(peer, path, place), { rx: column("rx_bps", 1), tx: column("tx_bps", 1), rtt: column("rtt_us", 1e-3), queue: column("queue_us", 1e-3), loss: column("loss_ppm", 1e-4) }];
    }));
  }

  /** Adds what is seen now; the row of a second that is there is written over. */
  add(seconds, rows) {
    const now = Math.floor(seconds / this.step) * this.step;
    let last = this.times.at(-1) ?? now - this.step;
    if (now < last) return;
    if (last + HOUR < now) {
      // The machine slept: what was before is of no use beside it.
      this.times = [];
      this.paths.clear();
      last = now - this.step;
    }
    while (last < now) {
      last += this.step;
      this.times.push(last);
      for (const path of this.paths.values()) for (const column of Object.values(path)) column.push(null);
    }
    for (const [name, row] of rows) {
      if (!this.paths.has(name)) this.paths.set(name, Object.fromEntries(["rx", "tx", "rtt", "queue", "loss"].map((metric) => [metric, this.times.map(() => null)])));
      const path = this.paths.get(name);
      for (const [metric, figure] of Object.entries(row)) path[metric][path[metric].length - 1] = figure;
    }
    const over = this.times.length - Math.max(HOUR, 1440);
    if (over > 0) {
      this.times.splice(0, over);
      for (const path of this.paths.values()) for (const column of Object.values(path)) column.splice(0, over);
    }
  }

  column(name, metric) { return this.paths.get(name)?.[metric] ?? this.times.map(() => null); }
}

/** Whose row it is. */
export const key = (peer, path, place) => `${peer}\n${path}\n${place}`;

const style = () => getComputedStyle(document.documentElement);
const color = (name) => style().getPropertyValue(`--${name}`).trim();
/** The colour of the link at this place. */
export const linkColor = (index) => `link-${index % 6 + 1}`;
const faint = (of, part) => `color-mix(in srgb, ${color(of)} ${part}%, ${color("card")})`;
const clock = (seconds, short) => new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: short ? undefined : "2-digit", hour12: false });
const mbit = (values) => values.map((value) => (value == null ? null : value / 1e6));

const axis = (more) => ({ stroke: color("quiet"), grid: { stroke: color("line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif", ...more });

/** The large chart. Made anew when what it shows changes. */
export class Chart {
  constructor(element) { this.element = element; this.plot = null; this.shape = ""; this.marks = []; }

  /** Shows the last `span` seconds of `metric` of these paths: [{ name, label, index }]. */
  show(record, paths, metric, span, marks) {
    this.marks = marks;
    const shape = JSON.stringify([metric, span, paths, this.element.clientWidth, color("card")]);
    if (shape !== this.shape) {
      this.shape = shape;
      this.plot?.destroy();
      this.plot = new uPlot(this.options(paths, metric, span), this.data(record, paths, metric), this.element);
    } else {
      this.plot.setData(this.data(record, paths, metric), false);
    }
    const now = record.times.at(-1) ?? 0;
    this.plot.setScale("x", { min: now - span, max: now });
    this.element.setAttribute("aria-label", `${METRICS[metric]} of ${paths.map(({ label }) => label).join(", ")} over the last ${SPANS[span]}; the figures are in the list of links`);
  }

  /** Received is stacked upwards and sent downwards: the largest sum is drawn first, and covered by the next. */
  data(record, paths, metric) {
    if (metric !== "rate") return [record.times, ...paths.map(({ name }) => record.column(name, metric))];
    const stack = (direction, sign) => {
      let sum = record.times.map(() => null);
      return paths.map(({ name }) => {
        const column = mbit(record.column(name, direction));
        sum = sum.map((before, row) => (column[row] == null ? before : (before ?? 0) + sign * column[row]));
        return sum;
      }).reverse();
    };
    return [record.times, ...stack("rx", 1), ...stack("tx", -1)];
  }

  options(paths, metric, span) {
    const figure = (value) => { const size = Math.abs(value); return `${size >= 10 || size === 0 ? Math.round(size) : +size.toFixed(2)}`; };
    const reversed = [...paths].reverse();
    const area = ({ index }) => ({ stroke: color(linkColor(index)), fill: faint(linkColor(index), 38), width: 1.25, points: { show: false } });
    const line = ({ index }) => ({ stroke: color(linkColor(index)), width: 2, points: { show: false } });
    const least = metric === "rate" ? 0.1 : metric === "loss" ? 2 : 10;
    return {
      width: this.element.clientWidth, height: this.element.clientHeight, legend: { show: false }, cursor: { show: false }, padding: [10, 6, 0, 0],
      scales: { x: { time: true, auto: false }, y: { range: (_, low, high) => metric === "rate" ? [Math.min(low ?? 0, -least) * 1.12, Math.max(high ?? 0, least) * 1.12] : [0, Math.max(high ?? 0, least) * 1.12] } },
      axes: [axis({ space: 80, size: 30, values: (_, all) => all.map((seconds) => clock(seconds, span > 600)) }), axis({ size: 46, space: 34, values: (_, all) => all.map(figure) })],
      series: [{}, ...(metric === "rate" ? [...reversed.map(area), ...reversed.map(area)] : paths.map(line))],
      hooks: { draw: [(plot) => this.draw(plot, metric)] },
    };
  }

  /** The line between received and sent, and what happened. */
  draw(plot, metric) {
    const { ctx, bbox } = plot;
    ctx.save();
    if (metric === "rate") {
      const zero = Math.round(plot.valToPos(0, "y", true));
      ctx.fillStyle = color("quiet");
      ctx.fillRect(bbox.left, zero, bbox.width, devicePixelRatio);
    }
    for (const { time, kind } of this.marks) {
      const of = MARKED[kind];
      const x = Math.round(plot.valToPos(time, "x", true));
      if (!of || x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.strokeStyle = ctx.fillStyle = color(of);
      ctx.lineWidth = 1.5 * devicePixelRatio;
      ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.beginPath();
      ctx.arc(x, bbox.top, 4 * devicePixelRatio, 0, 7);
      ctx.fill();
    }
    ctx.restore();
  }
}

/** What one link carries, both ways together, over the last two minutes. */
export class Spark {
  constructor(element, index) { this.element = element; this.index = index; this.plot = null; this.shape = ""; }

  show(record, name) {
    const [rx, tx] = ["rx", "tx"].map((direction) => mbit(record.column(name, direction)));
    const data = [record.times, rx.map((value, row) => (value == null ? null : value + (tx[row] ?? 0)))];
    const shape = `${this.element.clientWidth} ${color("card")}`;
    if (shape !== this.shape) {
      this.shape = shape;
      this.plot?.destroy();
      this.plot = new uPlot({
        width: this.element.clientWidth, height: this.element.clientHeight, legend: { show: false }, cursor: { show: false }, padding: [4, 0, 2, 0],
        scales: { x: { auto: false }, y: { range: (_, low, high) => [0, Math.max(high ?? 0, 0.1) * 1.08] } }, axes: [{ show: false }, { show: false }],
        series: [{}, { stroke: color(linkColor(this.index)), fill: faint(linkColor(this.index), 22), width: 1.75, points: { show: false } }],
      }, data, this.element);
    } else {
      this.plot.setData(data, false);
    }
    const now = record.times.at(-1) ?? 0;
    this.plot.setScale("x", { min: now - 120, max: now });
  }
}
