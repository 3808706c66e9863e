// The layout of the picture of ranks: a column for each group, a row for each rank, and a
// box for each node with its shared memory.

const BUFFERS = ["send", "recv", "tmp"];
const GAP = 12; // between the buffers of a rank
const LABEL = 34; // the name of a rank
const PAD = 10; // inside the box of a node

/** The heights of a row and of its buffers, for a number of rows. */
function heights(rows) {
  if (rows <= 8) return [40, 27];
  if (rows <= 16) return [27, 19];
  if (rows <= 32) return [19, 14];
  return [14, 10];
}

/** The largest size of each buffer over ranks. */
function extents(run, ranks) {
  return BUFFERS.map((name) => Math.max(0, ...ranks.map((r) => run.ranks[r].sizes[name] ?? 0)));
}

/** The columns, with ranks, sizes of buffers, left edges and widths; and the pixels of an
 * element, equal in all columns, so that sizes can be compared. */
function columns(run, width, pad) {
  const arcs = Math.min(64, Math.max(30, width * 0.055));
  const between = run.groups.length === 2 ? Math.min(170, Math.max(64, width * 0.14)) : 0;
  const cols = run.groups.map((group) => {
    const ranks = Array.from({ length: group.n }, (_, i) => group.from + i);
    const sizes = extents(run, ranks);
    const used = sizes.filter((size) => size > 0).length;
    const fixed = LABEL + 2 * pad + GAP * Math.max(used - 1, 0) + 10;
    return { group, ranks, sizes, arcs, fixed, total: sizes.reduce((x, y) => x + y, 0) };
  });
  const sum = (name) => cols.reduce((x, col) => x + col[name], 0);
  const scale = Math.max(width - 2 * arcs - between - sum("fixed"), 40) / Math.max(sum("total"), 1);
  let x = arcs;
  for (const col of cols) {
    Object.assign(col, { x, wide: col.fixed + col.total * scale });
    x += col.wide + between;
  }
  return [cols, scale];
}

/** The boxes of ranks, from top to bottom: nodes, or a box for each column. */
function boxes(run, cols) {
  if (!run.nodes.length) return cols.map((col, k) => ({ node: null, rows: { [k]: col.ranks } }));
  return run.nodes.map((node, number) => {
    const rows = {};
    cols.forEach((col, k) => {
      const own = node.ranks.filter((r) => col.ranks.includes(r));
      if (own.length) rows[k] = own;
    });
    return { node: number, rows };
  });
}

/** The places of ranks, buffers and nodes, for a picture of a width. */
export function place(run, width) {
  const pad = run.nodes.length ? PAD : 0;
  const [cols, scale] = columns(run, width, pad);
  const all = boxes(run, cols);
  const TOP = cols.length === 2 ? 44 : 26; // the names of groups and buffers
  const count = cols.map((_, k) =>
    all.reduce((sum, box) => sum + (box.rows[k]?.length ?? 0), 0),
  );
  const [row, bar] = heights(Math.max(...count));
  const memory = run.node_sizes.some((size) => size > 0);
  const sizes = cols.map((col) => col.sizes);
  const offsets = sizes.map((size) => {
    let x = 0;
    return size.map((n) => {
      const at = x;
      if (n > 0) x += n * scale + GAP;
      return at;
    });
  });

  const ranks = new Map();
  const nodes = [];
  const bottom = cols.map(() => TOP);
  for (const box of all) {
    const used = Object.keys(box.rows).map(Number);
    const top = Math.max(...used.map((k) => bottom[k]));
    const head = box.node === null ? 0 : 20;
    const most = Math.max(...used.map((k) => box.rows[k].length));
    for (const k of used) {
      box.rows[k].forEach((r, i) => {
        const y = top + head + i * row + (row - bar) / 2;
        ranks.set(r, { x: cols[k].x + pad, y, column: k });
      });
    }
    let end = top + head + most * row;
    if (box.node !== null) {
      const shared = memory && run.node_sizes[box.node] > 0;
      const [x, right] = [
        Math.min(...used.map((k) => cols[k].x)),
        Math.max(...used.map((k) => cols[k].x + cols[k].wide)),
      ];
      const box_ = { node: box.node, x, y: top, wide: right - x };
      if (shared) {
        box_.memory = { x: x + pad + 2, y: end + 16, wide: right - x - 2 * pad - 4, tall: bar };
        end += 16 + bar;
      }
      end += PAD;
      nodes.push({ ...box_, tall: end - top });
      end += 16;
    }
    for (const k of used) bottom[k] = end;
  }

  return {
    width,
    height: Math.max(...bottom) + 6,
    bar,
    row,
    scale,
    cols,
    nodes,
    names: cols.flatMap((col, k) =>
      BUFFERS.flatMap((name, b) =>
        sizes[k][b] > 0
          ? [{ name, x: col.x + pad + LABEL + offsets[k][b], y: TOP - 10, wide: sizes[k][b] * scale }]
          : [],
      ),
    ),
    titles: cols.map((col) => ({ name: col.group.name, x: col.x })),
    rank(r) {
      return ranks.get(r);
    },
    /** The place of a buffer: x, y, pixels of an element, height. */
    cell(cells, cell) {
      if (cells.isNode(cell)) {
        const box = nodes[cells.node(cell)]?.memory;
        if (!box) return null;
        return { x: box.x, y: box.y, scale: box.wide / cells.size(cell), tall: box.tall };
      }
      const at = ranks.get(cells.rank(cell));
      const x = at.x + LABEL + offsets[at.column][cells.buffer(cell)];
      return { x, y: at.y, scale, tall: bar };
    },
    /** The left and right ends of a rank's row, at the middle of its height. */
    ends(r) {
      const at = ranks.get(r);
      const col = cols[at.column];
      const y = at.y + bar / 2;
      const used = sizes[at.column].filter((size) => size > 0);
      const wide = used.reduce((x, n) => x + n * scale + GAP, 0) - GAP;
      const right = used.length ? at.x + LABEL + wide + 8 : at.x + LABEL;
      const edge = run.nodes.length ? col.x + col.wide : right;
      return { left: run.nodes.length ? col.x : at.x - 10, right: edge, y, column: at.column };
    },
  };
}

/** The curve of a message between two ranks: the path, the direction of arrival, and the
 * middle. */
export function curve(places, source, target) {
  const [s, t] = [places.ends(source), places.ends(target)];
  const tip = 6;
  // leaves above the middle and arrives below, so that two messages that swap stay apart
  const [out, into] = [s.y - places.bar * 0.16, t.y + places.bar * 0.16];
  if (s.column !== t.column) {
    const east = t.column > s.column;
    const [x0, x1] = east ? [s.right + 2, t.left - 2] : [s.left - 2, t.right + 2];
    const stop = x1 - (east ? tip : -tip);
    const half = (x0 + stop) / 2;
    return {
      d: `M${x0},${out}C${half},${out} ${half},${into} ${stop},${into}`,
      tip: [x1, into, east ? 1 : -1],
      middle: [half, (out + into) / 2],
    };
  }
  // inside a group: beside the column; of a single group, downwards right, upwards left
  const isSingle = places.cols.length === 1;
  const east = isSingle ? t.y > s.y : s.column === 1;
  const x = east ? Math.max(s.right, t.right) + 2 : Math.min(s.left, t.left) - 2;
  const side = east ? 1 : -1;
  const far = 1.3 * Math.min(places.cols[0].arcs - 16, 14 + Math.abs(t.y - s.y) * 0.22);
  return {
    d: `M${x},${out}C${x + side * far},${out} ${x + side * far},${into} ${x + side * tip},${into}`,
    tip: [x, into, -side],
    middle: [x + side * far * 0.75, (out + into) / 2],
  };
}
