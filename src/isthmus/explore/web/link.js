// The view in the fragment of the address, so that a user can send a view to others.

/** The words of the fragment by their names. */
export function readLink() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

function sizeText(x) {
  return typeof x === "object" ? JSON.stringify(x) : String(x);
}

/** The sizes as text for the fragment. */
export function sizeWords(run) {
  return Object.fromEntries(Object.entries(run.sizes).map(([k, x]) => [k, sizeText(x)]));
}

/** Put a view into the address, without a new entry in the history. */
export function writeLink(view) {
  const words = Object.entries(view).filter(([, x]) => x !== null && x !== undefined);
  const hash = `#${new URLSearchParams(words.map(([k, x]) => [k, String(x)]))}`;
  if (hash === location.hash) return;
  try {
    history.replaceState(null, "", hash);
  } catch {
    location.hash = hash; // a frame may be forbidden to use the history
  }
}

/** A notice about sizes of a link that the page does not have; "" if there are none. */
export function otherSizes(words, run) {
  const own = sizeWords(run);
  const other = Object.keys(own).filter((k) => k in words && words[k] !== own[k]);
  if (words.collective && words.collective !== run.collective) {
    return `The link is for ${words.collective}; this page has ${run.collective}.`;
  }
  if (!other.length) return "";
  const linkSizes = other.map((k) => `${k} = ${words[k]}`).join(", ");
  return `The link is for ${linkSizes}; this page was made with ${other
    .map((k) => `${k} = ${own[k]}`)
    .join(", ")}. isthmus explore makes a page of other sizes.`;
}
