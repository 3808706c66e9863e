// Names and numbers as people read them.

const BUFFERS = ["send", "recv", "tmp", "node"];

export function bufferName(b) {
  return b === 3 ? "shared memory" : BUFFERS[b];
}

/** The name of a rank: a0, a1, … b0, b1, … or r0, r1, … */
export function rankName(run, r) {
  const group = run.groups.find((g) => r < g.from + g.n);
  return group.letter + (r - group.from);
}

/** A number with three significant digits. */
function threeDigits(x) {
  return x >= 1000 ? Math.round(x).toString() : Number(x.toPrecision(3)).toString();
}

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let k = 0;
  while (n >= 1024 && k < units.length - 1) {
    n /= 1024;
    k += 1;
  }
  return `${threeDigits(n)} ${units[k]}`;
}

/** The unit in which to show a time: [seconds, name]. */
export function timeUnit(seconds) {
  const units = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]];
  return units.find(([size]) => seconds >= size) ?? [1e-9, "ns"];
}

export function seconds(x) {
  const [size, name] = timeUnit(x);
  return `${threeDigits(x / size)} ${name}`;
}

export function percent(x) {
  return `${Math.round(100 * Math.max(x, 0))} %`;
}

export function count(n, noun) {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

/** A collective in words: "Allgather between two groups". */
export function collectiveName(run) {
  const name = run.collective.replace(/^inter_/, "");
  const scope = run.groups.length === 2 ? "between two groups" : "inside one group";
  return `${name[0].toUpperCase()}${name.slice(1)} ${scope}`;
}

/** The sizes of a schedule in a few words: 6 and 2 ranks, blocks of 6 KiB. */
export function sizesOf(run) {
  const list = (x) => {
    const text = JSON.stringify(x).replace(/,/g, ", ");
    return text.length > 42 ? `${text.slice(0, 40)}…]` : text;
  };
  const { sizes } = run;
  const ranks = run.groups.map((group) => group.n).join(" and ");
  const words = [count(run.n, "rank").replace(/^\d+/, ranks)];
  const blocks = ["ka", "kb", "k"].filter((name) => name in sizes).map((name) => bytes(sizes[name]));
  if (blocks.length) words.push(`blocks of ${[...new Set(blocks)].join(" and ")}`);
  if ("m" in sizes) words.push(`vectors of ${bytes(sizes.m)}`);
  if ("shape" in sizes) words.push(`an array of ${sizes.shape.join(" × ")}`);
  const shownNames = ["p", "q", "ka", "kb", "k", "m", "shape"];
  for (const [name, x] of Object.entries(sizes)) {
    if (shownNames.includes(name)) continue;
    words.push(Array.isArray(x) ? `${name} ${list(x)}` : `${name} ${x}`);
  }
  return words.join(", ");
}
