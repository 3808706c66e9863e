// The timeline: ranks are rows, time goes right. A row has sends above, receives below,
// and copies and reductions between.
import { css, lateness } from "./colours.js";
import { bytes, count, percent, rankName, seconds, timeUnit } from "./format.js";

const LEFT = 40;
const RIGHT = 76;
const TOP = 20;
const BOTTOM = 26;
const WAITS = 1; // a kind of work: waiting for the ranks of the node

/** The delay of each message's end after the first end of the step, in seconds. */
export function lateOf(line) {
  const first = new Map();
  line.step.forEach((k, i) => first.set(k, Math.min(first.get(k) ?? Infinity, line.end[i])));
  return line.step.map((k, i) => (line.end[i] - first.get(k)) * line.tick);
}

/** A function that says whether a message is on the critical path, by step and ranks. */
export function criticalOf(line) {
  const keys = new Set(line.path.map((i) => `${line.step[i] + 1},${line.source[i]},${line.target[i]}`));
  return (step, source, target) => keys.has(`${step},${source},${target}`);
}

/** The height of a row, for a number of ranks. */
function heightOf(n) {
  if (n <= 6) return 36;
  if (n <= 10) return 28;
  if (n <= 64) return Math.max(6, Math.min(18, 420 / n));
  return Math.max(0.6, 480 / n);
}

export class TimelineView {
  /** `tell` has functions: tip(event, words), goto(step). */
  constructor(box, run, line, tell) {
    Object.assign(this, { run, line, tell, late: lateOf(line) });
    this.critical = new Set(line.path);
    const frame = d3.select(box).append("figure").attr("class", "timeline");
    this.head = frame.append("figcaption");
    const stage = frame.append("div").attr("class", "stage");
    this.canvas = stage.append("canvas").attr("role", "img").node();
    this.axis = stage.append("svg").attr("class", "axis").attr("aria-hidden", "true");
    this.transform = d3.zoomIdentity;
    this.zoom = d3.zoom().scaleExtent([1, 200])
      .filter((event) => (event.type === "wheel" ? event.ctrlKey || event.metaKey : !event.button))
      .on("zoom", (event) => {
        this.transform = event.transform;
        this.draw();
      });
    d3.select(this.canvas).call(this.zoom);
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => tell.tip(null));
    this.canvas.addEventListener("click", (event) => {
      const i = this.at(event);
      if (i !== null) tell.goto(line.step[i] + 1);
    });
    this.order = run.nodes.length ? run.nodes.flatMap((node) => node.ranks) : null;
    this.rowOf = new Map((this.order ?? Array.from({ length: run.n }, (_, r) => r)).map((r, i) => [r, i]));
    this.byRank = Array.from({ length: run.n }, () => []);
    line.source.forEach((r, i) => this.byRank[r].push([i, 0]));
    line.target.forEach((r, i) => this.byRank[r].push([i, 1]));
  }

  /** The words above the timeline. */
  words() {
    const { line } = this;
    const fact = (name, value, about) => `<span title="${about}">${name} <b>${value}</b></span>`;
    const facts = [fact("time", seconds(line.time), "when the last rank is done")];
    if (line.limit) {
      const times = (line.time / line.limit).toPrecision(3);
      facts.push(fact("limit", seconds(line.limit), "no algorithm is faster on this machine"));
      facts.push(`<span><b>${times} ×</b> the limit</span>`);
    }
    facts.push(fact("ports idle", percent(line.idle), "the share of the time in which ports neither send nor receive"));
    facts.push(fact("critical path", count(line.path.length, "message"), "what the end waited for"));
    if (this.total < this.common) facts.push("<span><b>scale of its own</b></span>");
    const kind = line.recorded ? "Recorded" : "Simulated";
    const note = line.recorded && !line.linked
      ? `<p class="note">The recorded call sent other messages than are drawn here: on its machine isthmus cuts blocks by what it measured there. A step is then a round of its ranks.</p>`
      : "";
    const name = document.createElement("i");
    name.textContent = line.name;
    return `<h3>${kind}: ${name.innerHTML}</h3><div class="facts">${facts.join("")}</div>${note}`;
  }

  /** Lay out for a width of `total` seconds; `common` is the time of most timelines. */
  resize(width, total, common) {
    const { run } = this;
    Object.assign(this, { total, common });
    this.rowTall = heightOf(run.n);
    this.wide = Math.max(width, 360);
    this.tall = TOP + run.n * this.rowTall + BOTTOM;
    this.ratio = devicePixelRatio || 1;
    Object.assign(this.canvas, { width: this.wide * this.ratio, height: this.tall * this.ratio });
    Object.assign(this.canvas.style, { width: `${this.wide}px`, height: `${this.tall}px` });
    this.axis.attr("width", this.wide).attr("height", this.tall);
    this.base = d3.scaleLinear([0, total], [LEFT, this.wide - RIGHT]);
    const extent = [[LEFT, 0], [this.wide - RIGHT, this.tall]];
    this.zoom.extent(extent).translateExtent(extent);
    this.head.html(this.words());
  }

  /** Show a step; `colour` is "ports" or "late", `latest` the longest delay shown. */
  show(step, colour, latest) {
    Object.assign(this, { step, colour, latest });
    this.draw();
  }

  draw() {
    const { run, line } = this;
    const x = this.transform.rescaleX(this.base);
    this.x = x;
    const draw = this.canvas.getContext("2d");
    draw.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    draw.clearRect(0, 0, this.wide, this.tall);
    draw.save();
    draw.beginPath();
    draw.rect(LEFT, 0, this.wide - RIGHT - LEFT, this.tall);
    draw.clip();
    this.rows(draw, x);
    this.band(draw, x);
    this.bars(draw, x);
    this.work(draw, x);
    this.path(draw, x);
    this.limit(draw, x);
    draw.restore();
    this.names(draw);
    this.ports(draw);
    const [unit, name] = timeUnit(this.total);
    const scale = x.copy().domain(x.domain().map((t) => t / unit));
    const many = this.wide / 90, number = scale.tickFormat(many);
    const axis = d3.axisBottom(scale).ticks(many).tickSizeOuter(0);
    axis.tickFormat((t, i, all) => (i === all.length - 1 ? `${number(t)} ${name}` : number(t)));
    this.axis.selectAll("*").remove();
    this.axis.append("g").attr("transform", `translate(0,${this.tall - BOTTOM + 3})`).call(axis);
    this.canvas.setAttribute("aria-label", `Timeline of ${run.n} ranks, ${line.name}: ${seconds(line.time)}`);
  }

  y(rank) {
    return TOP + this.rowOf.get(rank) * this.rowTall;
  }

  /** The part of a row for sends (0), receives (1), work (2): top and height. */
  lane(rank, which) {
    const gap = this.rowTall > 4 ? Math.min(4, this.rowTall * 0.18) : 0;
    const tall = this.rowTall - gap;
    const third = this.line.work ? tall * 0.22 : 0;
    const half = (tall - third) / 2;
    const at = this.y(rank) + gap / 2;
    if (which === 2) return [at + half, third];
    return which === 0 ? [at, half] : [at + half + third, half];
  }

  rows(draw, x) {
    draw.fillStyle = css("idle");
    for (let r = 0; r < this.run.n; r += 1) {
      const [top] = this.lane(r, 0);
      const [low, half] = this.lane(r, 1);
      const end = x(this.line.finish[r] * this.line.tick);
      draw.fillRect(x(0), top, end - x(0), low + half - top);
    }
  }

  /** Draw a band over the time in which messages of the step are under way. */
  band(draw, x) {
    const { line, step } = this;
    let [from, to] = [Infinity, -Infinity];
    line.step.forEach((k, i) => {
      if (k + 1 !== step) return;
      from = Math.min(from, line.start[i]);
      to = Math.max(to, line.end[i]);
    });
    if (from > to) return;
    draw.fillStyle = css("band");
    draw.fillRect(x(from * line.tick), 0, x(to * line.tick) - x(from * line.tick), this.tall - BOTTOM);
  }

  bars(draw, x) {
    const { line, step, colour } = this;
    const fills = [css("send"), css("receive")];
    const ramp = lateness();
    const paint = (i, alpha) => {
      const [from, to] = [x(line.start[i] * line.tick), x(line.end[i] * line.tick)];
      if (to < LEFT || from > this.wide - RIGHT) return;
      draw.globalAlpha = alpha;
      const wide = Math.max(to - from - (to - from > 3 ? 0.7 : 0), 0.6);
      [line.source[i], line.target[i]].forEach((rank, which) => {
        const [top, tall] = this.lane(rank, which);
        draw.fillStyle = colour === "late" ? ramp(this.latest ? this.late[i] / this.latest : 0) : fills[which];
        draw.fillRect(from, top, wide, Math.max(tall - 0.4, 0.5));
      });
    };
    line.step.forEach((k, i) => {
      if (k + 1 !== step) paint(i, step === 0 || colour === "late" ? 0.9 : k + 1 < step ? 0.62 : 0.3);
    });
    line.step.forEach((k, i) => k + 1 === step && paint(i, 1));
    draw.globalAlpha = 1;
  }

  work(draw, x) {
    const { work, tick } = this.line;
    if (!work) return;
    const [busy, waits] = [css("work"), css("waits")];
    work.rank.forEach((rank, i) => {
      const [top, tall] = this.lane(rank, 2);
      const [from, to] = [x(work.start[i] * tick), x(work.end[i] * tick)];
      draw.fillStyle = work.kind[i] === WAITS ? waits : busy;
      draw.fillRect(from, top, Math.max(to - from, 0.6), Math.max(tall, 0.6));
    });
  }

  /** Draw the critical path: messages from sender to receiver, and work between. */
  path(draw, x) {
    const { line } = this;
    if (!line.legs.length) return;
    draw.strokeStyle = css("critical");
    draw.lineWidth = this.run.n > 64 ? 1 : 1.6;
    draw.lineJoin = "round";
    draw.beginPath();
    const { legs, tick } = line;
    // with more legs than pixels, the line is transparent, or it would hide the bars
    const pixelsPerLeg = (4 * (this.wide - LEFT - RIGHT) * this.transform.k) / legs.length;
    draw.globalAlpha = Math.min(1, Math.max(0.15, pixelsPerLeg / 4));
    for (let i = 0; i < legs.length; i += 4) {
      const [source, target, start, end] = legs.slice(i, i + 4);
      const ends = source === target ? [2, 2] : [0, 1]; // work of one rank, or a message
      const [s, sTall] = this.lane(source, ends[0]);
      const [t, tTall] = this.lane(target, ends[1]);
      if (i === 0) draw.moveTo(x(start * tick), s + sTall / 2);
      else draw.lineTo(x(start * tick), s + sTall / 2);
      draw.lineTo(x(end * tick), t + tTall / 2);
    }
    draw.stroke();
    draw.globalAlpha = 1;
  }

  limit(draw, x) {
    if (!this.line.limit) return;
    const at = x(this.line.limit);
    draw.strokeStyle = css("ink-soft");
    draw.lineWidth = 1.2;
    draw.setLineDash([4, 3]);
    draw.beginPath();
    draw.moveTo(at, 12);
    draw.lineTo(at, this.tall - BOTTOM);
    draw.stroke();
    draw.setLineDash([]);
    draw.fillStyle = css("ink-soft");
    draw.font = "11px system-ui, sans-serif";
    const right = at > (LEFT + this.wide - RIGHT) / 2;
    draw.textAlign = right ? "right" : "left";
    draw.textBaseline = "alphabetic";
    draw.fillText("limit", at + (right ? -4 : 4), 11);
  }

  names(draw) {
    const { run } = this;
    draw.fillStyle = css("ink-soft");
    draw.font = `${Math.max(8, Math.min(11, this.rowTall))}px system-ui, sans-serif`;
    draw.textAlign = "right";
    draw.textBaseline = "middle";
    let stride = 1;
    while (stride * this.rowTall < 11) stride *= 2;
    for (const [r, row] of this.rowOf) {
      if (row % stride === 0) draw.fillText(rankName(run, r), LEFT - 7, this.y(r) + this.rowTall / 2);
    }
    draw.fillStyle = css("rule");
    const starts = run.nodes.length ? run.nodes.map((x) => x.ranks[0]) : run.groups.map((x) => x.from);
    for (const r of starts.slice(1)) draw.fillRect(6, this.y(r) - 0.5, this.wide - RIGHT - 6, 1);
  }

  /** Draw the share of time in which each port was in use. */
  ports(draw) {
    const { line, run } = this;
    const x = this.wide - RIGHT + 10;
    const full = RIGHT - 18;
    draw.fillStyle = css("ink-soft");
    draw.font = "11px system-ui, sans-serif";
    draw.textAlign = "left";
    draw.textBaseline = "alphabetic";
    draw.fillText("port use", x, 11);
    const whole = line.time / line.tick || 1;
    for (let r = 0; r < run.n; r += 1) {
      [line.sending[r], line.receiving[r]].forEach((busy, which) => {
        const [top, tall] = this.lane(r, which);
        const inner = Math.max(tall - (tall > 5 ? 3 : 0), 0.5);
        draw.fillStyle = css("idle");
        draw.fillRect(x, top + (tall - inner) / 2, full, inner);
        draw.fillStyle = css(which ? "receive" : "send");
        draw.fillRect(x, top + (tall - inner) / 2, full * Math.min(busy / whole, 1), inner);
      });
    }
  }

  /** The message under the pointer, or null. */
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    const row = Math.floor((py - TOP) / this.rowTall);
    const rank = this.order ? this.order[row] : row;
    if (!this.x || this.byRank[rank] === undefined || px < LEFT || px > this.wide - RIGHT) return null;
    const time = this.x.invert(px) / this.line.tick;
    const which = py > this.y(rank) + this.rowTall / 2 ? 1 : 0;
    const under = this.byRank[rank].filter(([i]) => this.line.start[i] <= time && time <= this.line.end[i]);
    return (under.find(([, side]) => side === which) ?? under[0] ?? [null])[0];
  }

  hover(event) {
    const i = this.at(event);
    this.canvas.style.cursor = i === null ? "default" : "pointer";
    if (i === null) {
      this.tell.tip(null);
      return;
    }
    const { line, run } = this;
    const [from, to] = [line.start[i] * line.tick, line.end[i] * line.tick];
    const ends = `${rankName(run, line.source[i])} → ${rankName(run, line.target[i])}`;
    this.tell.tip(event, [
      `<b>${ends}</b>, ${bytes(line.size[i])}, step ${line.step[i] + 1}`,
      `from ${seconds(from)} to ${seconds(to)}`,
      `${seconds(this.late[i])} after the first of its step`,
      this.critical.has(i) ? "on the critical path" : "",
    ].filter(Boolean).join("<br>"));
  }
}
