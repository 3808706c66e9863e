// Explorers in frames have the height that they need, and the colours of the page.
const frames = () => [...document.querySelectorAll("figure.explorer iframe")];

function theme() {
  const chosen = document.body.dataset.theme;
  if (chosen === "light" || chosen === "dark") return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function tell(frame) {
  frame.contentWindow?.postMessage({ isthmusTheme: theme() }, "*");
}

// A frame says how tall it is when it is ready, and when it is told the colours.
addEventListener("message", (event) => {
  const frame = frames().find((x) => x.contentWindow === event.source);
  const tall = event.data?.isthmusHeight;
  if (!frame || !(tall > 0)) return;
  const height = String(Math.min(tall + 2, 1200));
  if (frame.height === height) return;
  frame.height = height;
  tell(frame);
});

addEventListener("DOMContentLoaded", () => {
  const all = () => frames().forEach(tell);
  all();
  new MutationObserver(all).observe(document.body, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
});
