// A panel shows an algorithm: ranks or a matrix, timelines, and the way of a block.
import { bufferName, bytes, count, rankName, sizesOf } from "./format.js";
import { GridView, gridOf } from "./grid.js";
import { Replay, sizeOf } from "./memory.js";
import { LinksView } from "./links.js";
import { MatrixView } from "./matrix.js";
import { RanksView } from "./ranks.js";
import { criticalOf, lateOf, TimelineView } from "./timeline.js";
import { wayOf } from "./way.js";

/** The ratio of lengths above which a short timeline has a scale of its own. */
const APART = 10;

export class Panel {
  /** `tell` has functions: tip, goto(step), pick(panel, block). */
  constructor(box, run, id, tell) {
    Object.assign(this, { run, id, tell });
    this.box = d3.select(box).append("section").attr("class", "panel").attr("data-panel", id);
    this.detail = Boolean(run.steps);
    this.head = this.box.append("header");
    const views = this.box.append("div").attr("class", "views");
    this.stage = views.append("div").attr("class", "stage-box");
    this.side = views.append("div").attr("class", "side");
    const box_ = this.stage.node();
    if (this.detail) {
      this.replay = new Replay(run);
      const pick = (cell, start, size) => tell.pick(this, { cell, start, size });
      this.grid = gridOf(run) ? new GridView(box_, this.replay, { tip: tell.tip, pick }) : null;
      this.view = new RanksView(box_, this.replay, { tip: tell.tip, pick }, id);
    } else {
      this.view = new MatrixView(box_, run, tell);
    }
    this.wayBox = this.side.append("div").attr("class", "way-box").attr("hidden", "");
    this.lines = this.side.append("div").attr("class", "lines");
    this.log = this.side.append("details").attr("class", "log").attr("hidden", this.detail ? null : "");
    this.title();
  }

  /** Show the timelines of a machine, and the recorded timelines. */
  use(machine) {
    const timelines = this.run.timelines;
    const own = timelines.filter((x) => !x.recorded && x.name === machine);
    const shown = [...own, ...timelines.filter((x) => x.recorded)];
    this.shown = shown;
    this.main = shown[0] ?? null;
    this.critical = this.main ? criticalOf(this.main) : () => false;
    this.lines.selectAll("*").remove();
    this.timelines = shown.map((x) => new TimelineView(this.lines.node(), this.run, x, this.tell));
    this.loads = shown.slice(0, 1).map((x) => new LinksView(this.lines.node(), this.run, x, this.tell.tip));
    if (!shown.length) {
      this.lines.append("p").attr("class", "note")
        .text("No times: the MPI library's own call is part of this schedule, and nobody knows what it does.");
    }
  }

  get last() {
    if (this.detail) return this.replay.last;
    return this.main ? this.main.step.reduce((x, y) => Math.max(x, y), -1) + 1 : 0;
  }

  get longest() {
    return Math.max(0, ...this.shown.map((x) => x.time));
  }

  get latest() {
    return this.shown.reduce((most, x) => lateOf(x).reduce((a, b) => Math.max(a, b), most), 0);
  }

  title() {
    const { run } = this;
    this.head.selectAll("*").remove();
    this.head.append("h2").text(run.algorithm);
    const idea = this.head.append("p").attr("class", "idea").text(run.idea);
    if (run.paper) idea.append("cite").text(run.paper);
  }

  /** Lay out for the present width; the width of a timeline is `total` seconds. */
  resize(total) {
    const width = (box) => Math.floor(box.node().getBoundingClientRect().width);
    this.grid?.resize(width(this.stage));
    this.view.resize(width(this.stage));
    for (const x of this.loads) x.resize(width(this.lines));
    for (const x of this.timelines) x.resize(width(this.lines), this.scaleOf(x.line, total), total);
  }

  /** The seconds of a timeline's width: equal for all, unless real runs are so much longer
   * or shorter that nothing could be seen. */
  scaleOf(line, total) {
    const mixed = this.shown.some((x) => x.recorded) && this.shown.some((x) => !x.recorded);
    return mixed && total > APART * line.time ? 1.02 * line.time : total;
  }

  /** Show a step; `fly` is the duration of moves in milliseconds, or 0. */
  show(step, { fly, colour, latest, block }) {
    const now = Math.min(step, this.last);
    this.step = now;
    if (this.detail) {
      const way = block ? this.way(now, block) : null;
      if (fly && now === step && now > 0) this.view.fly(now, fly, way, this.critical);
      else this.view.show(now, way, this.critical);
      this.grid?.show(now);
      this.tellWay(way);
      this.tellStep(now);
    } else if (this.main) this.view.show(now, this.main);
    for (const x of this.timelines) x.show(now, colour, latest);
  }

  way(step, { cell, start, size }) {
    const way = wayOf(this.replay, step, cell, start, size);
    return { ...way, here: [cell, start, size], step };
  }

  /** The block of an element in a cell after a step, or null. */
  blockAt(step, cell, start) {
    const list = this.replay.state(Math.min(step, this.last))[cell] ?? [];
    const run = list.find(([at, size]) => at <= start && start < at + size);
    return run ? { cell, start: run[0], size: run[1] } : null;
  }

  /** The number of the rank of a name; undefined for an unknown name. */
  rankOf(name) {
    return Array.from({ length: this.run.n }, (_, r) => r).find((r) => rankName(this.run, r) === name);
  }

  /** Scroll the row of a rank into view, marked for a moment. */
  showRank(rank) {
    const row = this.stage.selectAll(".ranks .name").filter((_, i, all) => all[i].textContent === rankName(this.run, rank));
    this.stage.selectAll(".found").classed("found", false);
    row.classed("found", true).each(function () {
      this.scrollIntoView({ block: "center", inline: "nearest" });
    });
    setTimeout(() => row.classed("found", false), 2400);
  }

  /** A block of the rank `origin` in the buffers of the rank `place`, received ones first. */
  blockOf(step, origin, place) {
    const state = this.replay.state(Math.min(step, this.last));
    const { cells } = this.replay;
    const holds = (cell) => (state[cell] ?? []).find(([, , , who]) => who.some(([lo, hi]) => lo <= origin && origin < hi));
    const own = [...state.keys()].filter((cell) => cells.rank(cell) === place);
    const received = own.filter((cell) => cells.buffer(cell) !== 0);
    const cell = [...received, ...own].find(holds);
    if (cell === undefined) return null;
    const [start, size] = holds(cell);
    return { cell, start, size };
  }

  /** All blocks in reading order, for the keyboard. */
  blocks(step) {
    return this.replay.state(Math.min(step, this.last)).flatMap((list, cell) =>
      list.map(([start, size]) => ({ cell, start, size })),
    );
  }

  span([cell, start, size]) {
    return `${this.view.cellName(cell)} [${start}:${start + size}]`;
  }

  /** Tell the way of a block, step by step, in words. */
  tellWay(way) {
    const box = this.wayBox;
    box.attr("hidden", way ? null : "");
    box.selectAll("*").remove();
    if (!way) return;
    const { view } = this;
    const [cell, start, size] = way.here;
    const data = this.replay.load(this.replay.state(way.step), [way.here]);
    const whose = data.length ? view.origin(data[0][3]) : "nobody";
    const sum = data.length && view.contributors(data[0][3]) > 1;
    const head = box.append("div").attr("class", "way-head");
    head.append("h3").text(`How ${sum ? "the sum of" : "the data of"} ${whose} came to ${view.cellName(cell)}`);
    head.append("button").attr("type", "button").attr("aria-label", "Close").text("×")
      .on("click", () => this.tell.pick(this, null));
    const list = box.append("ol");
    const begin = way.begin.slice(0, 6).map((x) => this.span(x)).join("; ");
    const rest = way.begin.length > 6 ? ` and ${way.begin.length - 6} more` : "";
    list.append("li").html(`<span class="when">start</span>in `).append("span").text(begin + rest);
    for (const move of way.moves.slice(0, 200)) {
      const item = list.append("li").classed("now", move.step === this.step);
      item.append("button").attr("type", "button").attr("class", "when")
        .text(`step ${move.step}`).on("click", () => this.tell.goto(move.step));
      const moved = move.parts.reduce((n, part) => n + part.to[2], 0);
      const to = this.span(move.parts[0].to);
      const ends = `${view.name(move.source)} → ${view.name(move.target)}`;
      const verbs = {
        message: `${ends}, ${bytes(moved)}, into ${to}`,
        library: `${ends} by the MPI library, into ${to}`,
        copy: `${view.name(move.source)} copies ${bytes(moved)} to ${to}`,
        reduce: `${view.name(move.source)} adds ${bytes(moved)} to ${to}`,
      };
      item.append("span").text(verbs[move.kind]);
    }
    if (!way.moves.length) list.append("li").text(`These ${bytes(size)}, from byte ${start} on, did not move: the rank began with them.`);
  }

  /** Show the messages of a step as a table. */
  tellStep(step) {
    const { run } = this;
    const sent = step > 0 ? this.replay.moves[step - 1].filter((m) => m.kind === "message") : [];
    const open = this.log.property("open");
    this.log.selectAll("*").remove();
    this.log.append("summary").text(
      step > 0 ? `${count(sent.length, "message")} in step ${step}` : "No messages yet",
    );
    this.log.property("open", open);
    if (!sent.length) return;
    const table = this.log.append("table");
    table.append("thead").append("tr").selectAll("th")
      .data(["from", "to", "bytes", "out of", "into"]).join("th").attr("scope", "col").text((x) => x);
    const where = (spans) =>
      spans.slice(0, 2).map(([cell, start, size]) =>
        `${bufferName(this.replay.cells.buffer(cell))}[${start}:${start + size}]`).join(" ") +
      (spans.length > 2 ? ` … ${spans.length}` : "");
    const row = table.append("tbody").selectAll("tr").data(sent.slice(0, 300)).join("tr");
    row.selectAll("td")
      .data((m) => [rankName(run, m.source), rankName(run, m.target), bytes(sizeOf(m.to)), where(m.from), where(m.to)])
      .join("td").text((x) => x);
  }

  /** The messages, copies and meetings of a step, in a few words. */
  words(step) {
    const now = Math.min(step, this.last);
    if (now === 0) return "before the first step";
    if (!this.detail) {
      const sizes = this.main.size.filter((_, i) => this.main.step[i] + 1 === now);
      return `${count(sizes.length, "message")}, ${bytes(sizes.reduce((x, y) => x + y, 0))}`;
    }
    const moves = this.replay.moves[now - 1];
    const sent = moves.filter((m) => m.kind === "message");
    const total = sent.reduce((n, m) => n + sizeOf(m.to), 0);
    const words = [];
    if (sent.length) words.push(`${count(sent.length, "message")}, ${bytes(total)}`);
    if (moves.some((m) => m.kind === "library")) words.push("the MPI library's own call");
    const copies = moves.filter((m) => m.kind === "copy").length;
    const sums = moves.filter((m) => m.kind === "reduce").length;
    if (copies) words.push(copies === 1 ? "1 copy" : `${copies} copies`);
    if (sums) words.push(count(sums, "reduction"));
    const met = (this.run.steps[now - 1].meetings ?? []).length;
    if (met) words.push(`${count(met, "node")} met`);
    return words.join(" · ");
  }

  remove() {
    this.box.remove();
  }

  get subtitle() {
    return sizesOf(this.run);
  }
}
