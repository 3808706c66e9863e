// The load of every link over time: a row for each pair of ranks, or of nodes; the darker
// a bin of time, the longer the link carried a message.
import { css } from "./colours.js";
import { bytes, rankName, seconds } from "./format.js";

/** The most links shown; with more, those with the most bytes are shown. */
const MOST = 40;
const ROW = 13;
const LEFT = 74;
const BINS = 72;

/** The links of a timeline, most bytes first: name, bytes, and the load of each bin. */
export function linksOf(run, line) {
  const node = new Map();
  run.nodes.forEach((x) => x.ranks.forEach((r) => node.set(r, x.name)));
  const name = (r) => (run.nodes.length ? `node ${node.get(r)}` : rankName(run, r));
  const linkOfName = new Map();
  const bin = line.time / line.tick / BINS || 1;
  line.source.forEach((source, i) => {
    const [from, to] = [name(source), name(line.target[i])];
    if (from === to) return;
    const key = `${from} → ${to}`;
    if (!linkOfName.has(key)) linkOfName.set(key, { name: key, bytes: 0, load: new Array(BINS).fill(0) });
    const link = linkOfName.get(key);
    link.bytes += line.size[i];
    const [start, end] = [line.start[i], line.end[i]];
    for (let k = Math.max(Math.floor(start / bin), 0); k < BINS && k * bin < end; k += 1) {
      const shared = Math.min(end, (k + 1) * bin) - Math.max(start, k * bin);
      link.load[k] = Math.min(1, link.load[k] + shared / bin);
    }
  });
  return [...linkOfName.values()].sort((x, y) => y.bytes - x.bytes);
}

export class LinksView {
  constructor(box, run, line, tip) {
    Object.assign(this, { run, line, tip });
    this.links = linksOf(run, line);
    this.shown = this.links.slice(0, MOST);
    this.box = d3.select(box).append("details").attr("class", "links");
    const hidden = this.links.length - this.shown.length;
    this.box.append("summary").text(
      `Load of ${this.links.length} links over time${hidden > 0 ? `; the ${MOST} with the most bytes` : ""}`,
    );
    this.canvas = this.box.append("canvas").attr("role", "img")
      .attr("aria-label", "The load of every link over time").node();
    this.box.on("toggle", () => this.draw());
    d3.select(this.canvas).on("pointermove", (event) => this.point(event)).on("pointerleave", () => tip(null));
  }

  resize(width) {
    this.wide = Math.max(width, 280);
    this.draw();
  }

  draw() {
    if (!this.box.property("open") || !this.wide) return;
    const ratio = devicePixelRatio || 1;
    const tall = this.shown.length * ROW + 4;
    Object.assign(this.canvas, { width: this.wide * ratio, height: tall * ratio });
    Object.assign(this.canvas.style, { width: `${this.wide}px`, height: `${tall}px` });
    const draw = this.canvas.getContext("2d");
    draw.setTransform(ratio, 0, 0, ratio, 0, 0);
    const ramp = d3.interpolateRgbBasis([css("idle"), css("few"), css("many")]);
    const cell = (this.wide - LEFT) / BINS;
    draw.font = "10.5px system-ui, sans-serif";
    draw.textBaseline = "middle";
    this.shown.forEach((link, row) => {
      draw.fillStyle = css("ink-soft");
      draw.fillText(link.name, 0, row * ROW + ROW / 2, LEFT - 6);
      link.load.forEach((load, k) => {
        draw.fillStyle = ramp(load);
        draw.fillRect(LEFT + k * cell, row * ROW + 1, cell + 0.3, ROW - 2);
      });
    });
  }

  point(event) {
    const [x, y] = [event.offsetX, event.offsetY];
    const link = this.shown[Math.floor(y / ROW)];
    const k = Math.floor(((x - LEFT) / (this.wide - LEFT)) * BINS);
    if (!link || k < 0 || k >= BINS) this.tip(null);
    else this.tip(event, `${link.name}: ${bytes(link.bytes)} in all<br>${Math.round(100 * link.load[k])} % busy about ${seconds((this.line.time * (k + 0.5)) / BINS)}`);
  }
}
