// Keeps the keyboard focus in place when the focused element disappears (a row's Stop becomes Start, an action bar closes, the user leaves
// a page): moves it to the element in its place, otherwise to the page. Loaded with the first keystroke.

const TAB_STOPS = "a[href], button, input, select, textarea, [tabindex='0']";
/** The focus moves only within boxes with at most this many elements. */
const MAX_TAB_STOPS = 12;
const MAX_LEVELS = 6;

type Level = { readonly box: Element; readonly index: number };
/** The element that last had keyboard focus, and its position in each of the boxes around it. */
let lastFocus: { readonly element: HTMLElement; readonly levels: readonly Level[] } | undefined;

const listTabStops = (box: Element): HTMLElement[] =>
  [...box.querySelectorAll<HTMLElement>(TAB_STOPS)].filter((one) => one.checkVisibility() && !one.matches(":disabled"));

const listLevels = (element: HTMLElement): Level[] => {
  const levels: Level[] = [];
  for (let box = element.parentElement; box && levels.length < MAX_LEVELS; box = box.parentElement) {
    const stops = listTabStops(box);
    if (stops.length > MAX_TAB_STOPS || box.id === "main") break;
    levels.push({ box, index: stops.indexOf(element) });
  }
  return levels;
};

const restoreFocus = (): void => {
  if (!lastFocus || document.activeElement !== document.body) return;
  const { element, levels } = lastFocus;
  // A disabled element may be enabled again in a moment.
  if (element.isConnected && element.matches(":disabled")) return;
  if (element.isConnected && element.checkVisibility()) {
    element.focus();
    return;
  }
  for (const { box, index } of levels) {
    const stops = box.isConnected ? listTabStops(box) : [];
    const next = stops[Math.min(index, stops.length - 1)];
    if (!next) continue;
    next.focus();
    return;
  }
  // Keeps the scroll position.
  document.getElementById("main")?.focus({ preventScroll: true });
};

const observer = new MutationObserver(restoreFocus);

const rememberFocus = (target: EventTarget | null): void => {
  observer.disconnect();
  lastFocus = undefined;
  // Dialogs and menus restore the focus themselves.
  if (!(target instanceof HTMLElement) || !target.matches(":focus-visible") || target.closest("dialog, [popover]"))
    return;
  lastFocus = { element: target, levels: listLevels(target) };
  const attributeFilter = ["disabled", "hidden"];
  observer.observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter });
};

addEventListener("focusin", ({ target }) => rememberFocus(target));
rememberFocus(document.activeElement);
// A click outside all elements is intended to remove the focus.
addEventListener("pointerdown", () => {
  lastFocus = undefined;
  observer.disconnect();
});
