// The picture of the ranks: buffers, the moves of a step, and the way of a block.
import { css, inkOn, lineColour, partColours, rankColours } from "./colours.js";
import { bufferName, bytes, rankName } from "./format.js";
import { sizeOf } from "./memory.js";
import { curve, place } from "./place.js";
import { allPieces } from "./way.js";

/** The most pieces of a step that fly; a browser shows more of them with delay. */
const FLYING = 400;
/** Pixels of a column; runs that are narrower on average are drawn in columns. */
const COLUMN = 2;

export class RanksView {
  /** `tell` has functions: tip(event, words), pick(cell, start, size). */
  constructor(box, replay, tell, id) {
    this.replay = replay;
    this.run = replay.run;
    this.cells = replay.cells;
    this.tell = tell;
    this.id = id;
    this.sums = this.replay.moves.some((moves) => moves.some((m) => m.kind === "reduce"));
    this.parts = this.sums ? null : partsOf(replay);
    this.svg = d3.select(box).append("svg").attr("class", "ranks").attr("role", "img");
    this.layers = {};
    for (const name of ["defs", "nodes", "rows", "cells", "arrows", "way", "chips"]) {
      this.layers[name] = this.svg.append(name === "defs" ? "defs" : "g").attr("class", name);
    }
    this.flight = 0;
  }

  name(r) {
    return rankName(this.run, r);
  }

  cellName(cell) {
    if (this.cells.isNode(cell)) {
      const node = this.run.nodes[this.cells.node(cell)];
      return `shared memory${node ? ` of node ${node.name}` : ""}`;
    }
    return `${bufferName(this.cells.buffer(cell))} of ${this.name(this.cells.rank(cell))}`;
  }

  /** The ranks whose elements a run has, in words. */
  origin(who) {
    const words = who.map(([lo, hi]) =>
      hi === lo + 1 ? this.name(lo) : `${this.name(lo)}…${this.name(hi - 1)}`,
    );
    return words.join(", ");
  }

  contributors(who) {
    return who.reduce((sum, [lo, hi]) => sum + hi - lo, 0);
  }

  /** The colour of a run: of its origin, or of its part if all data have one origin. */
  colour([, , index, who]) {
    return this.parts ? this.partColours[this.part(index)] : this.colours[who[0][0]];
  }

  part(index) {
    let k = 0;
    while (k + 2 < this.parts.length && this.parts[k + 1] <= index) k += 1;
    return k;
  }

  /** The runs of a picture: cut where parts end. */
  cut(list) {
    if (!this.parts) return list;
    return list.flatMap(([start, size, index, who]) => {
      const inside = this.parts.filter((x) => index < x && x < index + size);
      const edges = [index, ...inside, index + size];
      return edges.slice(1).map((end, i) => [start + edges[i] - index, end - edges[i], edges[i], who]);
    });
  }

  /** Lay out all parts of the picture for a width. */
  resize(width) {
    this.flight += 1;
    this.colours = rankColours(this.run);
    this.partColours = this.parts ? partColours(this.parts.length - 1) : [];
    this.places = place(this.run, Math.max(width, 320));
    const { width: wide, height } = this.places;
    this.svg.attr("viewBox", `0 0 ${wide} ${height}`).attr("width", wide).attr("height", height);
    this.svg.attr("aria-label", `Buffers of ${this.run.n} ranks`);
    this.frame();
    this.drawn = new Map();
  }

  /** Draw the parts that are equal in all steps. */
  frame() {
    const { places, run } = this;
    const gradients = this.layers.defs.selectAll("linearGradient").data(this.sums ? run.groups : []);
    gradients
      .join("linearGradient")
      .attr("id", (g) => `lanes-${this.id}-${g.letter}`)
      .attr("gradientUnits", "userSpaceOnUse")
      .attr("x1", 0).attr("x2", 0).attr("y1", 0).attr("y2", places.bar)
      .selectAll("stop")
      .data((g) => Array.from({ length: 2 * g.n }, (_, i) => [(i + 1) >> 1, g.n, g.from + (i >> 1)]))
      .join("stop")
      .attr("offset", ([k, n]) => k / n)
      .attr("stop-color", ([, , r]) => this.colours[r]);

    const nodes = this.layers.nodes.selectAll("g.node").data(places.nodes).join("g");
    nodes.attr("class", "node").selectAll("*").remove();
    nodes.append("rect").attr("class", "box").attr("rx", 10)
      .attr("x", (b) => b.x - 2).attr("y", (b) => b.y)
      .attr("width", (b) => b.wide + 4).attr("height", (b) => b.tall);
    nodes.append("text").attr("class", "title")
      .attr("x", (b) => b.x + 10).attr("y", (b) => b.y + 15)
      .text((b) => `node ${run.nodes[b.node].name}`);
    const shared = nodes.filter((b) => b.memory);
    shared.append("text").attr("class", "caption")
      .attr("x", (b) => b.memory.x).attr("y", (b) => b.memory.y - 4).text("shared memory");
    shared.append("rect").attr("class", "buffer").attr("rx", 3)
      .attr("x", (b) => b.memory.x).attr("y", (b) => b.memory.y)
      .attr("width", (b) => b.memory.wide).attr("height", (b) => b.memory.tall);

    const rows = this.layers.rows;
    rows.selectAll("*").remove();
    const two = run.groups.length === 2;
    rows.selectAll("text.group").data(two ? places.titles : []).join("text")
      .attr("class", "group").attr("x", (t) => t.x).attr("y", 12).text((t) => t.name);
    rows.selectAll("text.caption").data(places.names).join("text")
      .attr("class", "caption").attr("x", (n) => (n.wide < 30 ? n.x + n.wide : n.x))
      .style("text-anchor", (n) => (n.wide < 30 ? "end" : "start")).attr("y", (n) => n.y + 2)
      .text((n) => n.name);
    const ranks = rows.selectAll("g.rank").data(d3range(run.n)).join("g").attr("class", "rank");
    ranks.append("text").attr("class", "name")
      .attr("x", (r) => places.rank(r).x + 22).attr("y", (r) => places.rank(r).y + places.bar / 2)
      .text((r) => this.name(r));
    ranks.append("path").attr("class", "done")
      .attr("d", "M0,0l2.6,2.8l4.6,-5.8")
      .attr("transform", (r) => `translate(${places.rank(r).x - 7},${places.rank(r).y + places.bar / 2})`);

    const own = d3range(3 * run.n).filter((cell) => this.cells.size(cell) > 0);
    const all = [...own, ...places.nodes.filter((b) => b.memory).map((b) => 3 * run.n + b.node)];
    this.layers.cells.selectAll("*").remove();
    this.groups = new Map();
    for (const cell of all) {
      const at = places.cell(this.cells, cell);
      const g = this.layers.cells.append("g").attr("class", "cell");
      g.attr("transform", `translate(${at.x},${at.y})`).attr("data-cell", cell);
      if (!this.cells.isNode(cell)) {
        g.append("rect").attr("class", "buffer").attr("rx", 2)
          .attr("width", Math.max(this.cells.size(cell) * at.scale, 1)).attr("height", at.tall);
      }
      this.groups.set(cell, g.append("g").node());
    }
  }

  /** Show the state after a number of steps, with the way of a picked block, or null. */
  show(step, way, critical) {
    this.flight += 1;
    this.step = step;
    this.layers.chips.selectAll("*").remove();
    this.fill(step);
    this.arrows(step, critical);
    this.showWay(way);
  }

  /** Go on by a step: moved pieces fly to their new places, then the state is shown. */
  fly(step, duration, way, critical) {
    this.show(step - 1, null, critical);
    const flight = this.flight;
    const moves = this.replay.moves[step - 1];
    const parts = moves.flatMap((move) =>
      move.kind === "copy" && !this.usesNode(move) ? [] : allPieces(move),
    );
    if (parts.length > FLYING) {
      this.show(step, way, critical);
      return;
    }
    this.arrows(step, critical);
    const before = this.replay.state(step - 1);
    const chips = parts.flatMap(({ from, to }) => this.chips(before, from, to));
    const rects = this.layers.chips.selectAll("rect").data(chips).join("rect");
    rects
      .attr("class", "chip").attr("rx", 2)
      .attr("fill", (c) => c.colour)
      .attr("x", (c) => c.x0).attr("y", (c) => c.y0)
      .attr("width", (c) => c.w0).attr("height", (c) => c.tall)
      .transition().duration(duration).ease(d3.easeCubicInOut)
      .attr("x", (c) => c.x1).attr("y", (c) => c.y1).attr("width", (c) => c.w1);
    setTimeout(() => {
      if (flight === this.flight) this.show(step, way, critical);
    }, duration + 20);
  }

  usesNode(move) {
    return [...move.from, ...move.to].some(([cell]) => this.cells.isNode(cell));
  }

  /** The flying rectangles of a piece of a move: runs, with places before and after. */
  chips(state, [from, first, size], [to, into]) {
    const [x, y] = [from, to].map((cell) => this.places.cell(this.cells, cell));
    if (!x || !y) return [];
    const chips = [];
    for (const [at, n, index, who] of this.cut(state[from])) {
      const lo = Math.max(at, first);
      const hi = Math.min(at + n, first + size);
      if (lo >= hi) continue;
      chips.push({
        colour: this.colour([at, n, index + lo - at, who]),
        x0: x.x + lo * x.scale,
        y0: x.y,
        w0: Math.max((hi - lo) * x.scale, 2),
        x1: y.x + (into + lo - first) * y.scale,
        y1: y.y,
        w1: Math.max((hi - lo) * y.scale, 2),
        tall: x.tall,
      });
    }
    return chips;
  }

  /** Draw the blocks of changed buffers, and mark ranks that are done. */
  fill(step) {
    const state = this.replay.state(step);
    for (const [cell, group] of this.groups) {
      if (this.drawn.get(cell) !== state[cell]) {
        this.drawn.set(cell, state[cell]);
        this.blocks(d3.select(group), cell, state[cell]);
      }
    }
    this.layers.rows.selectAll("path.done").classed("yes", (r) => this.replay.done(step, r) === true);
    const met = new Set(step > 0 ? this.run.steps[step - 1].meetings ?? [] : []);
    this.layers.nodes.selectAll("g.node").classed("met", (b) => met.has(b.node));
  }

  blocks(group, cell, runs) {
    const list = this.cut(runs);
    const at = this.places.cell(this.cells, cell);
    if (!this.sums && list.length * COLUMN > this.cells.size(cell) * at.scale) {
      this.columns(group, cell, list, at);
      return;
    }
    group.selectAll("rect.column").remove();
    const gap = list.length * 3 > this.cells.size(cell) * at.scale ? 0 : 0.8;
    const block = group.selectAll("g.block").data(list).join("g").attr("class", "block");
    block.selectAll("*").remove();
    block
      .attr("transform", ([start]) => `translate(${start * at.scale},0)`)
      .on("click", (event, [start, size]) => this.tell.pick(cell, start, size))
      .on("pointermove", (event, run) => this.tell.tip(event, this.words(cell, run)))
      .on("pointerleave", () => this.tell.tip(null));
    const wide = ([, size]) => Math.max(size * at.scale - gap, 0.7);
    const tall = at.tall;
    if (this.sums) {
      block.append("rect").attr("class", "under").attr("width", wide).attr("height", tall);
      block
        .selectAll("rect.lane")
        .data((run) => this.lanes(run[3]).map((lane) => [lane, wide(run)]))
        .join("rect")
        .attr("class", "lane")
        .attr("y", ([lane]) => lane.y).attr("height", ([lane]) => lane.tall)
        .attr("width", ([, w]) => w)
        .attr("fill", ([lane]) => `url(#lanes-${this.id}-${lane.letter})`);
    } else {
      block.append("rect").attr("rx", gap ? 2 : 0).attr("width", wide).attr("height", tall)
        .attr("fill", (run) => this.colour(run));
    }
    if (tall < 10) return;
    block
      .filter((run) => wide(run) > 8 + 6.4 * this.label(run).length)
      .append("text")
      .attr("class", this.sums ? "label sum" : "label")
      .attr("x", (run) => wide(run) / 2).attr("y", tall / 2)
      .style("font-size", `${Math.min(11.5, tall - 2)}px`)
      .style("fill", (run) => (this.sums ? null : inkOn(this.colour(run))))
      .text((run) => this.label(run));
  }

  /** Draw many narrow runs in columns: from top to bottom, the share of every rank. */
  columns(group, cell, list, at) {
    const each = COLUMN / at.scale;
    const room = (k) => Math.min(each, this.cells.size(cell) - k * each);
    const columns = new Map();
    for (const run of list) {
      const [start, size] = run;
      const colour = this.colour(run);
      for (let k = Math.floor(start / each); k * each < start + size; k += 1) {
        if (!columns.has(k)) columns.set(k, new Map());
        const share = Math.min(start + size, (k + 1) * each) - Math.max(start, k * each);
        const known = columns.get(k).get(colour);
        if (known) known.share += share / room(k);
        else columns.get(k).set(colour, { k, colour, run, share: share / room(k) });
      }
    }
    const order = (part) => (this.parts ? part.run[2] : part.run[3][0][0]);
    const parts = [...columns.values()].flatMap((column) => {
      let above = 0;
      return [...column.values()].sort((x, y) => order(x) - order(y)).map((part) => {
        above += part.share;
        return { ...part, above: above - part.share };
      });
    });
    group.selectAll("g.block").remove();
    group.selectAll("rect.column").data(parts).join("rect").attr("class", "column block")
      .attr("x", (part) => part.k * COLUMN).attr("width", (part) => room(part.k) * at.scale)
      .attr("y", (part) => part.above * at.tall).attr("height", (part) => part.share * at.tall)
      .attr("fill", (part) => part.colour)
      .on("click", (event, { run: [start, size] }) => this.tell.pick(cell, start, size))
      .on("pointermove", (event, part) => this.tell.tip(event, this.words(cell, part.run)))
      .on("pointerleave", () => this.tell.tip(null));
  }

  /** The text on a run: the number of contributions of a sum, the rank, or the part. */
  label([, , index, who]) {
    if (this.parts) return String(this.part(index));
    const n = this.contributors(who);
    return this.sums && n > 1 ? `Σ ${n}` : this.name(who[0][0]);
  }

  /** The stripes of a sum: one for each rank of a group, from top to bottom. */
  lanes(who) {
    const stripes = [];
    for (const group of this.run.groups) {
      for (const [first, end] of who) {
        const lo = Math.max(first, group.from) - group.from;
        const hi = Math.min(end, group.from + group.n) - group.from;
        if (lo >= hi) continue;
        const each = this.places.bar / group.n;
        const tall = Math.max((hi - lo) * each, 1.6);
        const y = Math.min(lo * each, this.places.bar - tall);
        stripes.push({ letter: group.letter, y, tall });
      }
    }
    return stripes;
  }

  words(cell, [start, size, index, who]) {
    const whose = this.contributors(who) > 1 ? "the sum of" : "from";
    return [
      `<b>${whose} ${this.origin(who)}</b>`,
      `its bytes ${index} to ${index + size - 1} (${bytes(size)})`,
      `in ${this.cellName(cell)}, from ${start} on`,
      `<i>click: how it came here</i>`,
    ].join("<br>");
  }

  /** Draw the messages of a step. */
  arrows(step, critical) {
    const moves = step > 0 ? this.replay.moves[step - 1] : [];
    const sent = moves.filter((m) => m.kind === "message" || m.kind === "library");
    const before = step > 0 ? this.replay.state(step - 1) : [];
    const most = Math.max(1, ...sent.map((m) => sizeOf(m.to)));
    let number = -1;
    const drawn = sent.map((m) => {
      if (m.kind === "message") number += 1;
      const data = this.replay.load(before, m.from);
      const colours = new Set(this.cut(data).map((run) => this.colour(run)));
      const isOneColour = colours.size === 1 && !this.sums;
      const colour = isOneColour ? lineColour([...colours][0]) : css("message");
      const thin = this.places.bar < 16 ? 0.55 : 1;
      const thick = thin * (1.2 + 1.6 * Math.sqrt(sizeOf(m.to) / most));
      const path = curve(this.places, m.source, m.target);
      return { ...m, ...path, colour, thick, critical: critical(step, m.source, m.target) };
    });
    const g = this.layers.arrows.selectAll("g.arrow").data(drawn).join("g");
    g.attr("class", (m) => `arrow${m.critical ? " critical" : ""}`).selectAll("*").remove();
    g.append("path").attr("class", "halo").attr("d", (m) => m.d)
      .style("stroke-width", (m) => m.thick + 3);
    g.append("path").attr("class", "line").attr("d", (m) => m.d)
      .style("stroke", (m) => m.colour).style("stroke-width", (m) => m.thick);
    g.append("path").attr("class", "tip")
      .attr("d", (m) => arrowhead(m.tip, 2.4 + m.thick)).style("fill", (m) => m.colour);
    g.on("pointermove", (event, m) => this.tell.tip(event, this.messageWords(m)))
      .on("pointerleave", () => this.tell.tip(null));
  }

  messageWords(m) {
    const place = (spans) => {
      const [cell, start, size] = spans[0] ?? [];
      if (cell === undefined) return "a signal";
      const rest = spans.length > 1 ? ` and ${spans.length - 1} more` : "";
      return `${bufferName(this.cells.buffer(cell))}[${start}:${start + size}]${rest}`;
    };
    const how = m.kind === "library" ? "the MPI library's own call" : bytes(sizeOf(m.to));
    return [
      `<b>${this.name(m.source)} → ${this.name(m.target)}</b>, ${how}`,
      m.to.length ? `${place(m.from)} → ${place(m.to)}` : "no data: a signal",
      m.critical ? "on the critical path" : "",
    ].filter(Boolean).join("<br>");
  }

  /** Draw the way of the picked block. */
  showWay(way) {
    const layer = this.layers.way;
    layer.selectAll("*").remove();
    this.svg.classed("picked", Boolean(way));
    if (!way) return;
    const sent = way.moves.filter((m) => m.kind === "message" || m.kind === "library");
    const drawn = sent.map((m) => ({ ...m, ...curve(this.places, m.source, m.target) }));
    layer.selectAll("path").data(drawn).join("path").attr("class", "line").attr("d", (m) => m.d);
    layer.selectAll("path.tip").data(drawn).join("path")
      .attr("class", "tip").attr("d", (m) => arrowhead(m.tip, 6));
    const outline = ([cell, start, size], kind) => {
      const at = this.places.cell(this.cells, cell);
      if (!at) return;
      layer.append("rect").attr("class", `outline ${kind}`).attr("rx", 2.5)
        .attr("x", at.x + start * at.scale - 1.2).attr("y", at.y - 1.2)
        .attr("width", Math.max(size * at.scale, 2) + 1.6).attr("height", at.tall + 2.4);
    };
    way.begin.forEach((span) => outline(span, "begin"));
    way.moves.forEach((m) => m.parts.forEach((part) => outline(part.to, "between")));
    outline(way.here, "here");
    const inside = ([x, y]) => [Math.min(Math.max(x, 9), this.places.width - 9), y];
    const badge = layer.selectAll("g.badge").data(drawn).join("g").attr("class", "badge")
      .attr("transform", (m) => `translate(${inside(m.middle)})`);
    badge.append("circle").attr("r", 8);
    badge.append("text").text((m) => m.step);
  }
}

/** The edges of the parts of a rank's data; null if data are of several ranks. */
function partsOf(replay) {
  const all = replay.state(0).flat();
  const origins = new Set(all.map(([, , , who]) => who[0][0]));
  if (origins.size !== 1) return null;
  const edges = new Set(all.flatMap(([, size, index]) => [index, index + size]));
  replay.moves.forEach((moves, k) => {
    for (const move of moves) {
      for (const [, size, index] of replay.load(replay.state(k), move.from)) {
        edges.add(index).add(index + size);
      }
    }
  });
  return [...edges].sort((x, y) => x - y);
}

function d3range(n) {
  return Array.from({ length: n }, (_, i) => i);
}

function arrowhead([x, y, side], size) {
  return `M${x},${y}l${-side * size * 1.5},${-size * 0.8}v${size * 1.6}z`;
}
