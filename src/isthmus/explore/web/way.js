// The way of a block: the moves that brought the block from its origin to its place.
import { sizeOf } from "./memory.js";

/** Ranges cut by two elements: [the parts between the two, the rest]. */
function cutOut(ranges, start, end) {
  const inside = [];
  const left = [];
  for (const [lo, hi] of ranges) {
    const [x, y] = [Math.max(lo, start), Math.min(hi, end)];
    if (x < y) {
      inside.push([x, y]);
      if (lo < x) left.push([lo, x]);
      if (y < hi) left.push([y, hi]);
    } else left.push([lo, hi]);
  }
  return [inside, left];
}

/** Ranges in order, joined where they touch. */
function joined(ranges) {
  const merged = [];
  for (const [lo, hi] of [...ranges].sort((x, y) => x[0] - y[0])) {
    const last = merged[merged.length - 1];
    if (last && lo <= last[1]) last[1] = Math.max(last[1], hi);
    else merged.push([lo, hi]);
  }
  return merged;
}

/** The part of a move between two elements of the data, as pieces with source and
 * target. */
function pieces(move, start, end) {
  const parts = [];
  const ends = [move.from, move.to].map((spans) => {
    let at = 0;
    return spans.map(([cell, first, size]) => {
      at += size;
      return { cell, first, at: at - size, size };
    });
  });
  for (const x of ends[0]) {
    for (const y of ends[1]) {
      const lo = Math.max(start, x.at, y.at);
      const hi = Math.min(end, x.at + x.size, y.at + y.size);
      if (lo < hi) {
        parts.push({
          from: [x.cell, x.first + lo - x.at, hi - lo],
          to: [y.cell, y.first + lo - y.at, hi - lo],
        });
      }
    }
  }
  return parts;
}

/** All of a move as pieces. */
export function allPieces(move) {
  return pieces(move, 0, sizeOf(move.to));
}

/** The way of elements of a cell up to a step: the parts of moves, in order, with their
 * steps; and the places where the elements began. */
export function wayOf(replay, step, cell, start, size) {
  const wanted = new Map([[cell, [[start, start + size]]]]);
  const way = [];
  for (let k = step; k > 0; k -= 1) {
    for (const move of [...replay.moves[k - 1]].reverse()) {
      const parts = [];
      let at = 0;
      for (const [to, first, length] of move.to) {
        const [inside, left] = cutOut(wanted.get(to) ?? [], first, first + length);
        if (inside.length && move.kind !== "reduce") wanted.set(to, left);
        for (const [lo, hi] of inside) {
          parts.push(...pieces(move, at + lo - first, at + hi - first));
        }
        at += length;
      }
      for (const part of parts) {
        const [from, first, length] = part.from;
        wanted.set(from, [...(wanted.get(from) ?? []), [first, first + length]]);
      }
      if (parts.length) way.push({ ...move, step: k, parts });
    }
  }
  const begin = [...wanted].flatMap(([from, ranges]) =>
    joined(ranges).map(([lo, hi]) => [from, lo, hi - lo]),
  );
  return { moves: way.reverse(), begin };
}
