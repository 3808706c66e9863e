// The array of a redistribution, in two dimensions: the owner of each element, and the
// elements that have arrived. Buffers of ranks have the array row by row, so that a block
// of the array is many short pieces, and nobody could see which.
import { css, rankColours } from "./colours.js";
import { rankName } from "./format.js";

/** Pixels between the two maps, above the maps, and the greatest height of a map. */
const GAP = 22;
const TITLE = 20;
const TALLEST = 340;
/** The least pixels of a part with a name. */
const NAMED = 26;
const NOBODY = -1;

/** Rows and columns of the array of a run; all axes but the last are rows. */
export function gridOf(run) {
  const shape = run.collective === "redistribution" ? run.sizes.shape : [];
  if (shape.length < 2) return null;
  const columns = shape[shape.length - 1];
  const rows = shape.slice(0, -1).reduce((x, y) => x * y, 1);
  return rows > 1 && columns > 1 ? { rows, columns } : null;
}

/** A map of pixels: for each a number, painted by runs of elements. */
class Raster {
  constructor(grid, wide, tall) {
    Object.assign(this, { grid, wide, tall });
    this.pixels = new Int16Array(wide * tall).fill(NOBODY);
  }

  /** The first pixel whose middle is at an element, or behind. */
  first(element, elements, pixels) {
    return Math.min(pixels, Math.max(0, Math.ceil((element * pixels) / elements - 0.5)));
  }

  /** Paint consecutive elements of the array. */
  paint(index, size, number) {
    const { rows, columns } = this.grid;
    for (let at = index; at < index + size; ) {
      const row = Math.floor(at / columns);
      const end = Math.min((row + 1) * columns, index + size);
      const left = this.first(at - row * columns, columns, this.wide);
      const right = this.first(end - row * columns, columns, this.wide);
      const low = this.first(row + 1, rows, this.tall);
      for (let y = this.first(row, rows, this.tall); y < low; y += 1) {
        this.pixels.fill(number, y * this.wide + left, y * this.wide + right);
      }
      at = end;
    }
  }

  at(x, y) {
    const inside = x >= 0 && y >= 0 && x < this.wide && y < this.tall;
    return inside ? this.pixels[y * this.wide + x] : NOBODY;
  }

  /** The element in the middle of a pixel. */
  element(x, y) {
    const { rows, columns } = this.grid;
    const row = Math.floor(((y + 0.5) * rows) / this.tall);
    return [row, Math.floor(((x + 0.5) * columns) / this.wide)];
  }
}

export class GridView {
  /** `tell` has functions: tip(event, words), pick(cell, start, size). */
  constructor(box, replay, tell) {
    Object.assign(this, { replay, run: replay.run, tell, grid: gridOf(replay.run) });
    this.canvas = d3.select(box).append("canvas").attr("class", "grid").attr("role", "img")
      .attr("aria-label", "The array as it lies, and as it will lie").node();
    d3.select(this.canvas)
      .on("pointermove", (event) => this.point(event))
      .on("pointerleave", () => this.tell.tip(null))
      .on("click", (event) => this.pick(event));
  }

  /** The cells of a rank's buffers, by the number of the buffer. */
  cell(rank, buffer) {
    return this.replay.cells.number(rank, buffer);
  }

  resize(width) {
    const { rows, columns } = this.grid;
    const room = Math.floor((Math.max(width, 280) - GAP) / 2);
    const scale = Math.min(room / columns, TALLEST / rows);
    // a long narrow array is stretched, so that its rows or columns can be seen
    const wide = Math.max(Math.round(columns * scale), Math.min(room, 120));
    const tall = Math.max(Math.round(rows * scale), 60);
    Object.assign(this, { wide, tall, left: [0, wide + GAP] });
    this.colours = rankColours(this.run);
    this.has = this.owners((r) => this.replay.state(0)[this.cell(r, 0)]);
    this.wants = this.owners((r) => this.promised(r));
    const ratio = devicePixelRatio || 1;
    Object.assign(this.canvas, { width: (2 * wide + GAP) * ratio, height: (tall + TITLE) * ratio });
    Object.assign(this.canvas.style, { width: `${2 * wide + GAP}px`, height: `${tall + TITLE}px` });
  }

  /** The runs that a rank must have in the end. */
  promised(r) {
    const image = this.run.images[this.run.ranks[r].after.recv] ?? [];
    return Array.from({ length: image.length / 5 }, (_, k) => image.slice(5 * k, 5 * k + 5));
  }

  /** A rank that has the element of each pixel; of several, the first. */
  owners(runsOf) {
    const raster = new Raster(this.grid, this.wide, this.tall);
    for (let r = this.run.n - 1; r >= 0; r -= 1) {
      for (const [, size, index] of runsOf(r) ?? []) raster.paint(index, size, r);
    }
    return raster;
  }

  /** Show the state after a step, and the moves of the step. */
  show(step) {
    this.step = step;
    const state = this.replay.state(step);
    const moves = step > 0 ? this.replay.moves[step - 1] : [];
    this.arrived = new Raster(this.grid, this.wide, this.tall);
    for (let r = this.run.n - 1; r >= 0; r -= 1) {
      for (const [, size, index, who] of state[this.cell(r, 1)] ?? []) {
        this.arrived.paint(index, size, who[0][0]);
      }
    }
    const { cells } = this.replay;
    const sent = moves.filter((move) => move.from.some(([cell]) => cells.buffer(cell) === 0));
    this.draw(this.moving(step, sent), this.moving(step, moves));
  }

  /** The number of the move of each pixel's element. */
  moving(step, moves) {
    const raster = new Raster(this.grid, this.wide, this.tall);
    moves.forEach((move, k) => {
      for (const [, size, index] of this.replay.load(this.replay.state(step - 1), move.from)) {
        raster.paint(index, size, k);
      }
    });
    return raster;
  }

  draw(leaves, comes) {
    const ratio = devicePixelRatio || 1;
    const draw = this.canvas.getContext("2d");
    draw.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw.clearRect(0, 0, this.canvas.width, this.canvas.height);
    draw.font = "600 12.5px system-ui, sans-serif";
    draw.fillStyle = css("ink");
    ["as it lies", "as it will lie"].forEach((words, k) => draw.fillText(words, this.left[k], 12));
    const own = (r) => rankName(this.run, r);
    const maps = [
      [this.has, this.has, leaves, own],
      [this.arrived, this.wants, comes, (r) => this.replicas(r)],
    ];
    for (const [k, [painted, parts, moving, nameOf]] of maps.entries()) {
      draw.save();
      draw.translate(this.left[k], TITLE);
      this.fill(draw, painted);
      this.borders(draw, parts, css("surface"), 1.4);
      this.borders(draw, moving, css("accent"), 2);
      this.names(draw, parts, nameOf);
      draw.restore();
    }
  }

  /** Draw pixels in the colour of the rank from which the element comes. */
  fill(draw, raster) {
    draw.fillStyle = css("idle");
    draw.fillRect(0, 0, this.wide, this.tall);
    for (let y = 0; y < this.tall; y += 1) {
      for (let x = 0, end; x < this.wide; x = end) {
        const number = raster.at(x, y);
        for (end = x + 1; end < this.wide && raster.at(end, y) === number; ) end += 1;
        if (number === NOBODY) continue;
        draw.fillStyle = this.colours[number];
        draw.fillRect(x, y, end - x, 1);
      }
    }
  }

  /** Draw lines between pixels of different numbers. */
  borders(draw, raster, colour, thick) {
    draw.fillStyle = colour;
    for (let y = 0; y <= this.tall; y += 1) {
      for (let x = 0; x <= this.wide; x += 1) {
        const here = raster.at(x, y);
        if (here !== raster.at(x - 1, y)) draw.fillRect(x - thick / 2, y, thick, 1);
        if (here !== raster.at(x, y - 1)) draw.fillRect(x, y - thick / 2, 1, thick);
      }
    }
  }

  /** Write the names of parts that are a rectangle. */
  names(draw, raster, nameOf) {
    draw.font = "11.5px system-ui, sans-serif";
    draw.textAlign = "center";
    draw.textBaseline = "middle";
    draw.lineJoin = "round";
    draw.lineWidth = 3.5;
    draw.strokeStyle = css("surface");
    draw.fillStyle = css("ink");
    for (const [r, [left, top, right, bottom, pixels]] of boxesOf(raster)) {
      const [wide, tall] = [right - left + 1, bottom - top + 1];
      if (pixels !== wide * tall || wide < NAMED || tall < NAMED / 2) continue;
      const middle = [left + wide / 2, top + tall / 2];
      draw.strokeText(nameOf(r), ...middle);
      draw.fillText(nameOf(r), ...middle);
    }
  }

  /** The names of all ranks that want the same elements as a rank. */
  replicas(r) {
    const wanted = this.run.ranks[r].after.recv;
    const all = this.run.ranks.flatMap((rank, i) => (rank.after.recv === wanted ? [rankName(this.run, i)] : []));
    return all.length > 2 ? `${all[0]} … ${all[all.length - 1]}` : all.join(", ");
  }

  /** The element under the pointer: [map, row, column, owner, rank that wants it]. */
  under(event) {
    const [x, y] = [event.offsetX, event.offsetY].map(Math.floor);
    const k = x >= this.left[1] ? 1 : 0;
    const at = [x - this.left[k], y - TITLE];
    const [has, wants] = [this.has.at(...at), this.wants.at(...at)];
    if (has === NOBODY && wants === NOBODY) return null;
    return [k, ...this.has.element(...at), has, wants];
  }

  point(event) {
    const target = this.under(event);
    if (!target) {
      this.tell.tip(null);
      return;
    }
    const [, row, column, has, wants] = target;
    const name = (r) => (r === NOBODY ? "nobody" : rankName(this.run, r));
    this.tell.tip(event, `<b>element (${row}, ${column})</b><br>${name(has)} has it, ${name(wants)} wants it<br><i>click: how it gets there</i>`);
  }

  /** Pick the block around an element, at the rank that wants it or the owner. */
  pick(event) {
    const target = this.under(event);
    if (!target) return;
    const [k, row, column, has, wants] = target;
    const element = row * this.grid.columns + column;
    const places = [[wants, 1], [has, 0]].slice(k === 0 ? 1 : 0).filter(([r]) => r !== NOBODY);
    for (const [cell, runs] of places.map((x) => this.held(...x))) {
      const run = runs.find(([, size, index]) => index <= element && element < index + size);
      if (run) {
        this.tell.pick(cell, run[0], run[1]);
        return;
      }
    }
  }

  /** A buffer of a rank, and its contents in the present step. */
  held(rank, buffer) {
    const cell = this.cell(rank, buffer);
    return [cell, this.replay.state(this.step)[cell] ?? []];
  }
}

/** For each number, the box around its pixels, and the number of pixels. */
function boxesOf(raster) {
  const boxOfNumber = new Map();
  raster.pixels.forEach((number, k) => {
    if (number === NOBODY) return;
    const [x, y] = [k % raster.wide, Math.floor(k / raster.wide)];
    const box = boxOfNumber.get(number);
    if (!box) boxOfNumber.set(number, [x, y, x, y, 1]);
    else {
      box[0] = Math.min(box[0], x);
      box[2] = Math.max(box[2], x);
      box[3] = Math.max(box[3], y);
      box[4] += 1;
    }
  });
  return boxOfNumber;
}
