// The player: stepping by buttons, slider and keys, and playing.

/** Milliseconds of a step at speed 1. */
const STEP = 1100;
export const SPEEDS = [0.25, 0.5, 1, 2, 4];

export class Player {
  /** `tell` has functions: goto(step, fly), speed(x), key(name). */
  constructor(tell) {
    this.tell = tell;
    this.speed = 1;
    this.step = 0;
    this.last = 0;
    this.timer = null;
    this.slider = document.getElementById("slider");
    this.label = document.getElementById("step-label");
    this.status = document.getElementById("status");
    this.speedBox = document.getElementById("speed");
    for (const x of SPEEDS) this.speedBox.add(new Option(`${x} ×`, x));
    this.speedBox.value = 1;
    this.speedBox.addEventListener("change", () => tell.speed(Number(this.speedBox.value)));
    this.slider.addEventListener("input", () => tell.goto(Number(this.slider.value), false));
    const buttons = {
      first: () => tell.goto(0, false),
      back: () => this.go(-1),
      play: () => this.toggle(),
      on: () => this.go(1),
      last: () => tell.goto(this.last, false),
    };
    for (const [name, act] of Object.entries(buttons)) {
      document.getElementById(`button-${name}`).addEventListener("click", (event) => {
        // a focused button takes the space key; after a mouse click, space must play
        if (event.detail > 0) event.currentTarget.blur();
        act();
      });
    }
    document.addEventListener("keydown", (event) => this.key(event, buttons));
  }

  get still() {
    return matchMedia("(prefers-reduced-motion: reduce)").matches;
  }

  /** The duration of a move in a step, in milliseconds. */
  get flight() {
    return this.still ? 0 : (0.62 * STEP) / this.speed;
  }

  key(event, buttons) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest?.("select, input:not([type=range])");
    if (typing || document.querySelector("dialog[open]")) return;
    const acts = {
      ArrowRight: buttons.on,
      ArrowLeft: buttons.back,
      Home: buttons.first,
      End: buttons.last,
      " ": buttons.play,
      "+": () => this.faster(1),
      "-": () => this.faster(-1),
    };
    const onButton = event.key === " " && event.target.closest?.("button, summary");
    if (onButton) return;
    const act = acts[event.key] ?? (() => this.tell.key(event.key));
    if (event.key in acts) event.preventDefault();
    act();
  }

  faster(by) {
    const at = SPEEDS.indexOf(this.speed);
    this.tell.speed(SPEEDS[Math.min(Math.max(at + by, 0), SPEEDS.length - 1)]);
  }

  go(by) {
    this.tell.goto(Math.min(Math.max(this.step + by, 0), this.last), by > 0);
  }

  toggle() {
    if (this.timer) this.stop();
    else {
      if (this.step >= this.last) this.tell.goto(0, false);
      this.tick(true);
    }
    this.showPlaying();
  }

  tick(now) {
    const wait = now ? 30 : STEP / this.speed;
    this.timer = setTimeout(() => {
      if (this.step >= this.last) {
        this.stop();
        return;
      }
      this.go(1);
      this.tick(false);
    }, wait);
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = null;
    this.showPlaying();
  }

  showPlaying() {
    const button = document.getElementById("button-play");
    button.setAttribute("aria-label", this.timer ? "Pause" : "Play");
    button.classList.toggle("playing", Boolean(this.timer));
  }

  show(step, last, words) {
    Object.assign(this, { step, last });
    Object.assign(this.slider, { max: last, value: step });
    this.slider.setAttribute("aria-valuetext", `step ${step} of ${last}: ${words}`);
    this.slider.style.setProperty("--done", last ? `${(100 * step) / last}%` : "0%");
    this.label.innerHTML = `step <b>${step}</b> of ${last}`;
    this.status.textContent = words;
    this.speedBox.value = this.speed;
  }
}
