// Anyone who works by keys keeps their place: what they pressed may go (a row's Stop becomes Start, a bar of actions closes, a page is left),
// and then what stands in its place has the focus, else the page. Loaded with the first key.

const STOPS = "a[href], button, input, select, textarea, [tabindex='0']";
/** A box with more in it than this is no neighbourhood. */
const NEAR = 12;
const FAR_UP = 6;

type Level = { readonly box: Element; readonly at: number };
/** What had the focus last, by keys, and where it stood in each of the boxes around it. */
let held: { readonly element: HTMLElement; readonly levels: readonly Level[] } | undefined;

const stopsIn = (box: Element): HTMLElement[] =>
  [...box.querySelectorAll<HTMLElement>(STOPS)].filter((one) => one.checkVisibility() && !one.matches(":disabled"));

const listLevels = (element: HTMLElement): Level[] => {
  const levels: Level[] = [];
  for (let box = element.parentElement; box && levels.length < FAR_UP; box = box.parentElement) {
    const stops = stopsIn(box);
    if (stops.length > NEAR || box.id === "main") break;
    levels.push({ box, at: stops.indexOf(element) });
  }
  return levels;
};

const look = (): void => {
  if (!held || document.activeElement !== document.body) return;
  const { element, levels } = held;
  // It may be pressed again in a moment.
  if (element.isConnected && element.matches(":disabled")) return;
  if (element.isConnected && element.checkVisibility()) {
    element.focus();
    return;
  }
  for (const { box, at } of levels) {
    const stops = box.isConnected ? stopsIn(box) : [];
    const next = stops[Math.min(at, stops.length - 1)];
    if (!next) continue;
    next.focus();
    return;
  }
  // Where one reads stays where it is.
  document.getElementById("main")?.focus({ preventScroll: true });
};

const observer = new MutationObserver(look);

const hold = (target: EventTarget | null): void => {
  observer.disconnect();
  held = undefined;
  // Dialogs and menus give the focus back on their own.
  if (!(target instanceof HTMLElement) || !target.matches(":focus-visible") || target.closest("dialog, [popover]"))
    return;
  held = { element: target, levels: listLevels(target) };
  const attributeFilter = ["disabled", "hidden"];
  observer.observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter });
};

addEventListener("focusin", ({ target }) => hold(target));
hold(document.activeElement);
// A press alongside everything is meant.
addEventListener("pointerdown", () => {
  held = undefined;
  observer.disconnect();
});
