// The messages of many ranks as a matrix: senders are rows, receivers columns.
import { css } from "./colours.js";
import { bytes, rankName } from "./format.js";

const LEFT = 46;
const TOP = 30;

export class MatrixView {
  constructor(box, run, tell) {
    this.run = run;
    this.tell = tell;
    const frame = d3.select(box).append("div").attr("class", "matrix");
    this.canvas = frame.append("canvas").attr("role", "img").node();
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => tell.tip(null));
  }

  resize(width) {
    this.size = Math.min(Math.max(width, 320), 700) - LEFT - 8;
    const ratio = devicePixelRatio || 1;
    const [wide, tall] = [this.size + LEFT + 8, this.size + TOP + 8];
    Object.assign(this.canvas, { width: wide * ratio, height: tall * ratio });
    Object.assign(this.canvas.style, { width: `${wide}px`, height: `${tall}px` });
    this.ratio = ratio;
  }

  /** Draw the messages of a step; messages of earlier steps are faint. */
  show(step, line) {
    this.step = step;
    this.line = line;
    const { run, size } = this;
    const draw = this.canvas.getContext("2d");
    draw.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    draw.clearRect(0, 0, this.canvas.width, this.canvas.height);
    const cell = size / run.n;
    draw.fillStyle = css("node");
    draw.fillRect(LEFT, TOP, size, size);
    const each = Math.max(cell, 1.2);
    const most = line.size.reduce((x, y) => Math.max(x, y), 1);
    const ramp = d3.interpolateRgbBasis([css("few"), css("send"), css("many")]);
    const put = (i) => draw.fillRect(LEFT + line.target[i] * cell, TOP + line.source[i] * cell, each, each);
    draw.fillStyle = css("past");
    line.step.forEach((k, i) => k + 1 < step && put(i));
    this.now = new Map();
    line.step.forEach((k, i) => {
      if (k + 1 !== step) return;
      draw.fillStyle = ramp(0.4 + 0.6 * Math.sqrt(line.size[i] / most));
      put(i);
      this.now.set(line.source[i] * run.n + line.target[i], i);
    });
    this.lines(draw, cell);
    const sent = this.now.size;
    this.canvas.setAttribute("aria-label", `Matrix of ${run.n} ranks: step ${step}, ${sent} messages`);
  }

  /** Draw the borders of groups and nodes, and the names of groups. */
  lines(draw, cell) {
    const edges = this.run.nodes.length > 1 && this.run.nodes.length <= 64
      ? this.run.nodes.map((node) => node.ranks[0])
      : [];
    const rule = (at, colour, wide) => {
      draw.fillStyle = colour;
      draw.fillRect(LEFT, TOP + at * cell - wide / 2, this.size, wide);
      draw.fillRect(LEFT + at * cell - wide / 2, TOP, wide, this.size);
    };
    edges.filter((at) => at > 0).forEach((at) => rule(at, css("rule"), 0.6));
    this.run.groups.slice(1).forEach((group) => rule(group.from, css("ink-soft"), 1));
    draw.fillStyle = css("ink-soft");
    draw.font = "12px system-ui, sans-serif";
    draw.textBaseline = "middle";
    for (const group of this.run.groups) {
      const middle = (group.from + group.n / 2) * cell;
      const words = this.run.groups.length > 1 ? group.name : "";
      draw.textAlign = "center";
      draw.fillText(`to ${words || "rank"} →`, LEFT + middle, TOP - 12);
      draw.save();
      draw.translate(LEFT - 14, TOP + middle);
      draw.rotate(-Math.PI / 2);
      draw.fillText(`← from ${words || "rank"}`, 0, 0);
      draw.restore();
    }
  }

  hover(event) {
    const box = this.canvas.getBoundingClientRect();
    const cell = this.size / this.run.n;
    const target = Math.floor((event.clientX - box.left - LEFT) / cell);
    const source = Math.floor((event.clientY - box.top - TOP) / cell);
    const { n } = this.run;
    if (Math.min(source, target) < 0 || Math.max(source, target) >= n) {
      this.tell.tip(null);
      return;
    }
    const i = this.now?.get(source * n + target);
    const words = i === undefined ? "no message in this step" : bytes(this.line.size[i]);
    const ends = `${rankName(this.run, source)} → ${rankName(this.run, target)}`;
    this.tell.tip(event, `<b>${ends}</b><br>${words}`);
  }
}
