// The replay of a schedule: the contents of every buffer after each step.
//
// A buffer is a list of runs [start, size, index, who], by start: elements from `index`
// on of the contributions of ranks, where `who` is a list of [lo, hi), each of ranks lo
// to hi - 1. Lists are never changed, since steps share the lists that stay equal.

/** The runs between two elements, with starts counted from the first of the two. */
export function slice(list, start, end) {
  const runs = [];
  for (const [at, size, index, who] of list) {
    const lo = Math.max(at, start);
    const hi = Math.min(at + size, end);
    if (lo < hi) runs.push([lo - start, hi - lo, index + lo - at, who]);
  }
  return runs;
}

/** A list with `size` elements from `start` on replaced by runs. */
function replaced(list, start, size, runs) {
  const before = slice(list, 0, start);
  const after = slice(list, start + size, Infinity);
  return merged([
    ...before,
    ...runs.map(([at, n, index, who]) => [start + at, n, index, who]),
    ...after.map(([at, n, index, who]) => [start + size + at, n, index, who]),
  ]);
}

/** A list with runs joined where a run continues the run before. */
function merged(list) {
  const runs = [];
  for (const run of list) {
    const last = runs[runs.length - 1];
    const goesOn =
      last && last[0] + last[1] === run[0] && last[2] + last[1] === run[2] && last[3] === run[3];
    if (goesOn) runs[runs.length - 1] = [last[0], last[1] + run[1], last[2], last[3]];
    else runs.push(run);
  }
  return runs;
}

/** Sets of ranks; equal sets are the same object, so that `===` compares sets. */
class Sets {
  constructor() {
    this.known = new Map();
    this.joined = new Map();
  }

  of(ranges) {
    const key = ranges.join(";");
    if (!this.known.has(key)) this.known.set(key, ranges);
    return this.known.get(key);
  }

  union(x, y) {
    const key = `${x.join(";")}|${y.join(";")}`;
    if (!this.joined.has(key)) {
      const ranges = [];
      for (const [lo, hi] of [...x, ...y].sort((s, t) => s[0] - t[0])) {
        const last = ranges[ranges.length - 1];
        if (last && lo <= last[1]) last[1] = Math.max(last[1], hi);
        else ranges.push([lo, hi]);
      }
      this.joined.set(key, this.of(ranges));
    }
    return this.joined.get(key);
  }
}

/** src (op) dst, element by element; where only one has the element, that element. */
function combined(src, dst, sets) {
  const edges = new Set();
  for (const [at, size] of [...src, ...dst]) edges.add(at).add(at + size);
  const sorted = [...edges].sort((x, y) => x - y);
  const runs = [];
  for (let i = 0; i + 1 < sorted.length; i += 1) {
    const [start, end] = [sorted[i], sorted[i + 1]];
    const [x] = slice(src, start, end);
    const [y] = slice(dst, start, end);
    if (!x && !y) continue;
    const who = x && y ? sets.union(x[3], y[3]) : (x ?? y)[3];
    runs.push([start, end - start, (x ?? y)[2], who]);
  }
  return merged(runs);
}

/** The numbers of all buffers: three of every rank, then the memory of every node. */
export class Cells {
  constructor(run) {
    this.run = run;
    this.nodeOf = new Map();
    const nodes = run.nodes.length ? run.nodes : [{ ranks: [...Array(run.n).keys()] }];
    nodes.forEach((node, k) => node.ranks.forEach((r) => this.nodeOf.set(r, k)));
    this.count = 3 * run.n + nodes.length;
  }

  /** The number of a rank's buffer, or of the memory of its node. */
  number(rank, buffer) {
    return buffer === 3 ? 3 * this.run.n + this.nodeOf.get(rank) : 3 * rank + buffer;
  }

  isNode(cell) {
    return cell >= 3 * this.run.n;
  }

  rank(cell) {
    return this.isNode(cell) ? null : Math.floor(cell / 3);
  }

  buffer(cell) {
    return this.isNode(cell) ? 3 : cell % 3;
  }

  node(cell) {
    return cell - 3 * this.run.n;
  }

  /** The number of elements of a buffer. */
  size(cell) {
    if (this.isNode(cell)) return this.run.node_sizes[this.node(cell)] ?? 0;
    return this.run.ranks[this.rank(cell)].sizes[["send", "recv", "tmp"][cell % 3]] ?? 0;
  }
}

/** The moves of a step, in order: { from, to, reduce, kind, … }, with spans of cells as
 * [cell, start, size]. */
export function moves(step, cells) {
  const spans = (rank, flat) => {
    const cellSpans = [];
    for (let i = 0; i < flat.length; i += 3) {
      cellSpans.push([cells.number(rank, flat[i]), flat[i + 1], flat[i + 2]]);
    }
    return cellSpans;
  };
  const local = ([reduce, rank, b0, s0, size, b1, s1]) => ({
    kind: reduce ? "reduce" : "copy",
    source: rank,
    target: rank,
    from: spans(rank, [b0, s0, size]),
    to: spans(rank, [b1, s1, size]),
  });
  const library = ([base, buffer, ...offsets]) => {
    const blockMoves = [];
    for (let i = 0; i + 1 < offsets.length; i += 1) {
      const flat = [buffer, offsets[i], offsets[i + 1] - offsets[i]];
      for (let j = 0; j + 1 < offsets.length; j += 1) {
        const ends = { source: base + i, target: base + j };
        const data = { from: spans(base + i, flat), to: spans(base + j, flat) };
        if (i !== j && flat[2]) blockMoves.push({ kind: "library", ...ends, ...data });
      }
    }
    return blockMoves;
  };
  const message = ([source, target, from, to]) => ({
    kind: "message",
    source,
    target,
    from: spans(source, from),
    to: spans(target, to),
  });
  return [
    ...(step.first ?? []).map(local),
    ...(step.messages ?? []).map(message),
    ...(step.library ?? []).flatMap(library),
    ...(step.then ?? []).map(local),
  ];
}

export function sizeOf(spans) {
  return spans.reduce((sum, [, , size]) => sum + size, 0);
}

export class Replay {
  constructor(run) {
    this.run = run;
    this.cells = new Cells(run);
    this.sets = new Sets();
    this.moves = run.steps.map((step) => moves(step, this.cells));
    this.states = [this.begin()];
  }

  get last() {
    return this.run.steps.length;
  }

  /** The k-th content of the data, as a list of runs. */
  image(k) {
    const flat = this.run.images[k];
    const runs = [];
    for (let i = 0; i < flat.length; i += 5) {
      const who = this.sets.of([[flat[i + 3], flat[i + 4]]]);
      runs.push([flat[i], flat[i + 1], flat[i + 2], who]);
    }
    return runs;
  }

  begin() {
    const state = Array.from({ length: this.cells.count }, () => []);
    this.run.ranks.forEach((rank, r) => {
      for (const [b, name] of ["send", "recv", "tmp"].entries()) {
        if (name in rank.before) state[3 * r + b] = this.image(rank.before[name]);
      }
    });
    return state;
  }

  /** The contents of every buffer after a number of steps. */
  state(step) {
    while (this.states.length <= step) {
      const state = [...this.states[this.states.length - 1]];
      for (const move of this.moves[this.states.length - 1]) this.apply(state, move);
      this.states.push(state);
    }
    return this.states[step];
  }

  load(state, spans) {
    const runs = [];
    let at = 0;
    for (const [cell, start, size] of spans) {
      for (const [x, n, index, who] of slice(state[cell], start, start + size)) {
        runs.push([at + x, n, index, who]);
      }
      at += size;
    }
    return runs;
  }

  apply(state, move) {
    let data = this.load(state, move.from);
    if (move.kind === "reduce") data = combined(data, this.load(state, move.to), this.sets);
    let at = 0;
    for (const [cell, start, size] of move.to) {
      state[cell] = replaced(state[cell], start, size, slice(data, at, at + size));
      at += size;
    }
  }

  /** Whether a rank holds all data promised by the collective; null without a promise. */
  done(step, r) {
    const promised = Object.entries(this.run.ranks[r].after);
    if (!promised.length) return null;
    const state = this.state(step);
    return promised.every(([name, k]) => {
      const cell = 3 * r + ["send", "recv", "tmp"].indexOf(name);
      return JSON.stringify(merged(this.image(k))) === JSON.stringify(state[cell]);
    });
  }
}
