// Explorers in frames have the colours of the page around them.
function theme() {
  const chosen = document.body.dataset.theme;
  if (chosen === "light" || chosen === "dark") return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function tell(frame) {
  frame.contentWindow?.postMessage({ isthmusTheme: theme() }, "*");
}

addEventListener("DOMContentLoaded", () => {
  const frames = [...document.querySelectorAll("figure.explorer iframe")];
  frames.forEach((frame) => frame.addEventListener("load", () => tell(frame)));
  const all = () => frames.forEach(tell);
  new MutationObserver(all).observe(document.body, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
});
