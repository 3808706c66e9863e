// The view in the fragment of the address, so that it can be sent to somebody.

/** What the fragment says: plain words by their names. */
export function readLink() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

function written(x) {
  return typeof x === "object" ? JSON.stringify(x) : String(x);
}

/** The sizes as the fragment has them. */
export function sizeWords(run) {
  return Object.fromEntries(Object.entries(run.sizes).map(([k, x]) => [k, written(x)]));
}

/** Put a view into the address, without a new entry in the history. */
export function writeLink(view) {
  const words = Object.entries(view).filter(([, x]) => x !== null && x !== undefined);
  const hash = `#${new URLSearchParams(words.map(([k, x]) => [k, String(x)]))}`;
  if (hash === location.hash) return;
  try {
    history.replaceState(null, "", hash);
  } catch {
    location.hash = hash; // where a frame may not use the history
  }
}

/** What a link says of sizes that this page does not have, in words. */
export function otherSizes(words, run) {
  const own = sizeWords(run);
  const other = Object.keys(own).filter((k) => k in words && words[k] !== own[k]);
  if (words.collective && words.collective !== run.collective) {
    return `The link is for ${words.collective}; this page has ${run.collective}.`;
  }
  if (!other.length) return "";
  const said = other.map((k) => `${k} = ${words[k]}`).join(", ");
  return `The link is for ${said}; this page was made with ${other
    .map((k) => `${k} = ${own[k]}`)
    .join(", ")}. isthmus explore makes a page of other sizes.`;
}
