// The page: the chosen view, and the panels that show it.
import { theme } from "./colours.js";
import { collectiveName, rankName, sizesOf } from "./format.js";
import { otherSizes, readLink, sizeWords, writeLink } from "./link.js";
import { Panel } from "./panel.js";
import { Player, SPEEDS } from "./player.js";

const byId = (id) => document.getElementById(id);

/** The data of the page, unpacked where needed. */
async function readData() {
  const box = byId("data");
  if (!("packed" in box.dataset)) return JSON.parse(box.textContent);
  const raw = Uint8Array.from(atob(box.textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

/** A name for each schedule: the algorithm, with sizes where two have one algorithm. */
function namesOf(runs) {
  const plain = runs.map((run) => run.algorithm);
  return runs.map((run, k) =>
    plain.indexOf(plain[k]) === plain.lastIndexOf(plain[k])
      ? plain[k]
      : `${plain[k]} (${sizesOf(run)}${run.nodes.length ? `, ${run.nodes.length} nodes` : ""}) ${k + 1}`,
  );
}

class Explorer {
  constructor(data) {
    this.runs = data.runs;
    this.names = namesOf(this.runs);
    this.machines = [...new Set(this.runs.flatMap((run) =>
      run.timelines.filter((x) => !x.recorded).map((x) => x.name)))];
    this.panels = [];
    this.view = { a: 0, b: null, machine: this.machines[0] ?? "", step: 0, block: null, speed: 1, colour: null };
    this.player = new Player({
      goto: (step, fly) => this.goto(step, fly),
      speed: (x) => this.set({ speed: x }),
      key: (name) => this.key(name),
    });
    this.choices();
    this.read();
    addEventListener("hashchange", () => this.read());
    let waiting = null;
    new ResizeObserver(() => {
      if (byId("panels").clientWidth === this.width) return;
      clearTimeout(waiting);
      waiting = setTimeout(() => this.lay(), 60);
    }).observe(byId("panels"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
    addEventListener("message", (event) => {
      const wanted = event.data?.isthmusTheme;
      if (!["light", "dark"].includes(wanted)) return;
      this.theme(wanted, false);
      this.tellHeight();
    });
  }

  choices() {
    const fill = (id, options, name) => {
      const box = byId(id);
      for (const [value, words] of options) box.add(new Option(words, value));
      box.addEventListener("change", () => this.choose(name, box.value));
      box.closest("label").hidden = options.length < 2;
    };
    const all = this.names.map((words, k) => [k, words]);
    fill("choose-a", all, "a");
    fill("choose-b", all.length > 1 ? [["", "nothing"], ...all] : [], "b");
    fill("choose-machine", this.machines.map((x) => [x, x]), "machine");
    fill("choose-colour", [["ports", "ports"], ["late", "lateness"]], "colour");
    byId("button-theme").addEventListener("click", () => this.theme(theme() === "dark" ? "light" : "dark"));
    byId("button-help").addEventListener("click", () => byId("help").showModal());
    byId("close-help").addEventListener("click", () => byId("help").close());
    byId("button-link").addEventListener("click", () => this.copy());
    byId("find").addEventListener("change", (event) => this.find(event.target.value));
  }

  choose(name, value) {
    if (name === "a") this.set({ a: Number(value), block: null });
    else if (name === "b") this.set({ b: value === "" ? null : Number(value), block: null });
    else this.set({ [name]: value });
  }

  /** Show a rank ("b1"), or pick a block of a rank in another ("a3 in b1"). */
  find(text) {
    const words = /^\s*([a-z]\d+)(?:\s+in\s+([a-z]\d+))?\s*$/i.exec(text);
    const panel = this.panels[0];
    const place = words && panel.rankOf((words[2] ?? words[1]).toLowerCase());
    const origin = words?.[2] ? panel.rankOf(words[1].toLowerCase()) : null;
    let notice = "";
    if (!text.trim()) this.pick(panel, null);
    else if (place === null || place === undefined || origin === undefined) {
      notice = `${text.trim()}: no such rank; write ${rankName(panel.run, 0)}, or a block of a rank in another, as in a0 in b1.`;
    } else if (!panel.detail) notice = "With so many ranks there are no buffers to search.";
    else if (origin === null) panel.showRank(place);
    else {
      const block = panel.blockOf(this.view.step, origin, place);
      panel.showRank(place);
      if (block) {
        this.view.block = null;
        this.pick(panel, block);
      } else notice = `No block of ${words[1]} is in ${words[2]} at step ${this.view.step}.`;
    }
    byId("notice").textContent = notice;
  }

  async copy() {
    const button = byId("button-link");
    try {
      await navigator.clipboard.writeText(location.href);
      button.classList.add("did");
      setTimeout(() => button.classList.remove("did"), 1200);
    } catch {
      prompt("The address of this view", location.href);
    }
  }

  /** Take the view from the address. */
  read() {
    const words = readLink();
    const number = (name) => {
      const k = this.names.indexOf(words[name] ?? "");
      return k >= 0 ? k : null;
    };
    const view = {
      a: number("algorithm") ?? 0,
      b: number("beside"),
      machine: this.machines.includes(words.machine) ? words.machine : this.machines[0] ?? "",
      // before the first step, only full send buffers are to be seen
      step: Math.max(0, Number.parseInt(words.step ?? "1", 10) || 0),
      speed: SPEEDS.includes(Number(words.speed)) ? Number(words.speed) : 1,
      colour: ["ports", "late"].includes(words.colour) ? words.colour : null,
      block: null,
    };
    if (["light", "dark"].includes(words.theme)) document.documentElement.dataset.theme = words.theme;
    byId("notice").textContent = otherSizes(words, this.runs[view.a]);
    this.set(view);
    const block = /^([ab]):(\d+):(\d+)$/.exec(words.block ?? "");
    const panel = block && this.panels.find((x) => x.id === block[1] && x.detail);
    if (panel) this.pick(panel, panel.blockAt(view.step, Number(block[2]), Number(block[3])));
  }

  /** Change the view, and show it. */
  set(changes) {
    const before = this.view;
    this.view = { ...before, ...changes };
    const { a, b } = this.view;
    const anew = !this.panels.length || before.a !== a || before.b !== b || before.machine !== this.view.machine;
    if (anew) this.build();
    this.player.speed = this.view.speed;
    this.view.step = Math.min(this.view.step, this.last);
    if (anew) this.lay();
    else this.show(false);
  }

  get last() {
    return Math.max(0, ...this.panels.map((x) => x.last));
  }

  get colour() {
    if (this.view.colour) return this.view.colour;
    return this.panels.some((x) => x.shown.some((y) => y.recorded)) ? "late" : "ports";
  }

  build() {
    this.panels.forEach((x) => x.remove());
    const { a, b, machine } = this.view;
    const tell = {
      tip: (event, words) => this.tip(event, words),
      goto: (step) => this.goto(step, false),
      pick: (panel, block) => this.pick(panel, block),
    };
    const box = byId("panels");
    this.panels = [new Panel(box, this.runs[a], "a", tell)];
    if (b !== null) this.panels.push(new Panel(box, this.runs[b], "b", tell));
    this.panels.forEach((x) => x.use(machine));
    box.classList.toggle("two", this.panels.length === 2);
    const run = this.runs[a];
    byId("title").textContent = collectiveName(run);
    byId("sizes").textContent = sizesOf(run) + (run.nodes.length ? `, ${run.nodes.length} nodes` : "");
    document.title = `${run.collective}: ${this.panels.map((x) => x.run.algorithm).join(", ")}`;
  }

  /** Lay out all panels for the present width. */
  lay() {
    this.width = byId("panels").clientWidth;
    const total = Math.max(...this.panels.map((x) => x.longest), 1e-12) * 1.02;
    this.panels.forEach((x) => x.resize(total));
    this.show(false);
  }

  /** Draw again after a change of colours. */
  paint() {
    byId("button-theme").setAttribute("aria-label", theme() === "dark" ? "Light colours" : "Dark colours");
    this.lay();
  }

  theme(name, keep = true) {
    document.documentElement.dataset.theme = name;
    this.view.theme = keep ? name : null;
    this.paint();
  }

  goto(step, fly) {
    this.view.step = Math.min(Math.max(step, 0), this.last);
    this.show(fly);
  }

  show(fly) {
    const { step, block } = this.view;
    const latest = Math.max(0, ...this.panels.map((x) => x.latest));
    for (const panel of this.panels) {
      panel.show(step, {
        fly: fly ? this.player.flight : 0,
        colour: this.colour,
        latest,
        block: block?.panel === panel.id ? block : null,
      });
    }
    const words = this.panels.map((x) => x.words(step));
    this.player.show(step, this.last, words.join("  |  "));
    this.legend();
    this.write();
  }

  /** Show the meaning of the timelines' colours. */
  legend() {
    document.body.dataset.colour = this.colour;
    const works = this.panels.some((x) => x.shown.some((y) => y.work));
    document.body.classList.toggle("works", works);
    document.body.classList.toggle("no-times", !this.panels.some((x) => x.shown.length));
    byId("choose-a").value = this.view.a;
    byId("choose-b").value = this.view.b ?? "";
    byId("choose-machine").value = this.view.machine;
    byId("choose-colour").value = this.colour;
  }

  write() {
    const { a, b, machine, step, block, speed, colour } = this.view;
    const run = this.runs[a];
    writeLink({
      collective: run.collective,
      algorithm: this.names[a],
      beside: b === null ? null : this.names[b],
      ...sizeWords(run),
      machine: machine || null,
      step,
      block: block ? `${block.panel}:${block.cell}:${block.start}` : null,
      speed: speed === 1 ? null : speed,
      colour,
      theme: this.view.theme ?? (readLink().theme || null),
    });
  }

  pick(panel, block) {
    const same = block && this.view.block?.cell === block.cell && this.view.block?.start === block.start;
    this.view.block = block && !same ? { ...block, panel: panel.id } : null;
    this.show(false);
  }

  /** Handle keys for blocks, theme and help. */
  key(name) {
    const panel = this.panels.find((x) => x.detail);
    if (name === "Escape") this.pick(panel, null);
    else if (name === "d") this.theme(theme() === "dark" ? "light" : "dark");
    else if (name === "?") byId("help").showModal();
    else if ("nN".includes(name) && panel) {
      const all = panel.blocks(this.view.step);
      const { block } = this.view;
      const at = all.findIndex((x) => x.cell === block?.cell && x.start === block?.start);
      const next = at < 0 ? 0 : (at + (name === "n" ? 1 : all.length - 1)) % all.length;
      if (all.length) this.pick(panel, all[next]);
    }
  }

  tip(event, words) {
    const box = byId("tip");
    box.hidden = !event;
    if (!event) return;
    box.innerHTML = words;
    const { width, height } = box.getBoundingClientRect();
    const x = Math.min(event.clientX + 14, innerWidth - width - 8);
    const y = event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18;
    Object.assign(box.style, { left: `${Math.max(x, 4)}px`, top: `${Math.max(y, 4)}px` });
  }

  /** Tell the height to a page around this page, so that the frame fits: once when ready,
   * and once on demand. More messages could make the two pages resize for ever. */
  tellHeight() {
    if (window.self === window.top || this.heightMessages > 1) return;
    this.heightMessages = (this.heightMessages ?? 0) + 1;
    window.parent.postMessage({ isthmusHeight: document.body.scrollHeight }, "*");
  }

  /** The contents of a panel's buffers, for tests: runs by cell. */
  state(id = "a") {
    const panel = this.panels.find((x) => x.id === id);
    return panel.replay.state(panel.step);
  }
}

document.body.classList.toggle("embedded", window.self !== window.top);
window.explorer = new Explorer(await readData());
document.body.classList.add("ready");
window.explorer.tellHeight();
