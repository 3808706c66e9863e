// Colours. Blue and orange stay apart for every kind of colour vision, and in each ramp
// lightness goes one way, so that ranks stay in order without any hue.

// A copy of RAMPS in draw/palette.py, so that pictures and pages have equal colours.
const RAMPS = {
  a: ["#bfe0f2", "#6fb3dc", "#2f7fc1", "#174a86", "#0d2a55"],
  b: ["#fde0ad", "#f7b25a", "#e0812a", "#a9510f", "#6b2c05"],
  c: ["#cdebc5", "#8ecb8b", "#4ba25a", "#22733c", "#0d4422"],
  d: ["#e0d9ee", "#b7a7d6", "#8a72b8", "#5f4592", "#3a2463"],
  e: ["#f9d5d3", "#ee9a98", "#d75a62", "#a32a40", "#661326"],
  f: ["#e3e6e8", "#b6bdc3", "#858f98", "#58626b", "#2e363d"],
  r: ["#f6e27f", "#a5c86a", "#4aa78c", "#2b7594", "#2f4682", "#3a2463"],
};
const LATE = {
  light: ["#f3e3b3", "#f3a45f", "#cf5063", "#6b2a72"],
  dark: ["#4a4266", "#9a4179", "#ec7a5c", "#fde08f"],
};

/** The end of a ramp: on a dark ground before the darkest colours, which are invisible. */
function farthest() {
  return theme() === "dark" ? 0.76 : 0.92;
}

/** A colour for every rank of a run, in rank order. */
export function rankColours(run) {
  const colours = [];
  for (const group of run.groups) {
    const ramp = d3.interpolateRgbBasis((RAMPS[group.letter] ?? RAMPS.f));
    for (let i = 0; i < group.n; i += 1) {
      colours.push(ramp(group.n > 1 ? 0.06 + (farthest() - 0.06) * (i / (group.n - 1)) : 0.5));
    }
  }
  return colours;
}

/** Colours for n parts of a rank's data, in order. */
export function partColours(n) {
  const ramp = d3.interpolateRgbBasis(RAMPS.r);
  return Array.from({ length: n }, (_, i) => ramp(n > 1 ? 0.04 + (farthest() - 0.04) * (i / (n - 1)) : 0.4));
}

/** A colour for a thin line, which is invisible if too near to the ground. */
export function lineColour(colour) {
  const [r, g, b] = colour.match(/\d+/g).map(Number);
  const light = 0.299 * r + 0.587 * g + 0.114 * b;
  const isTooNear = theme() === "dark" ? light < 90 : light > 165;
  return isTooNear ? d3.interpolateRgbBasis([colour, css("message")])(0.55) : colour;
}

/** The colour of legible text on a colour, rgb(…). */
export function inkOn(colour) {
  const [r, g, b] = colour.match(/\d+/g).map(Number);
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#15202b" : "#ffffff";
}

/** The ramp from on time to late. */
export function lateness() {
  return d3.interpolateRgbBasis(LATE[theme()]);
}

export function theme() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen) return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** A colour of the style sheet. */
export function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
