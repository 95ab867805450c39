// Keys of the whole app: Ctrl/Cmd-K, and two letters after each other such as G W. Hints are shown while Alt is held. Nothing is taken
// from a field one writes in.

type Handler = (event: KeyboardEvent) => void;

const handlers = new Map<string, Handler>();
const WAIT_MS = 900;
let first = "";
let at = 0;

/** `keys` is one key (`n`), two after each other (`g w`), or with the command key (`mod+k`). Returns how to take it back. */
export const onKeys = (keys: string, act: Handler): (() => void) => {
  handlers.set(keys, act);
  return () => {
    if (handlers.get(keys) === act) handlers.delete(keys);
  };
};

// In a shadow root, such as that of the code editor, the target of an event is its host; the path begins where it was typed.
const isWriting = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) &&
  !(target instanceof HTMLInputElement && /^(checkbox|radio|button|range)$/.test(target.type));

const pressed = (event: KeyboardEvent): void => {
  const key = event.key.toLowerCase();
  document.documentElement.toggleAttribute("data-keys", event.altKey);
  if (event.ctrlKey || event.metaKey) {
    const handler = handlers.get(`mod+${key}`);
    if (!handler || event.shiftKey || event.altKey) return;
    event.preventDefault();
    handler(event);
    return;
  }
  if (event.altKey || isWriting(event.composedPath()[0] ?? null) || document.querySelector("dialog[open]")) return;
  const both = event.timeStamp - at < WAIT_MS ? `${first} ${key}` : "";
  const handler = handlers.get(both) ?? handlers.get(key);
  [first, at] = [key, event.timeStamp];
  if (!handler) return;
  event.preventDefault();
  handler(event);
};

export const listenForKeys = (): void => {
  addEventListener("keydown", pressed);
  addEventListener("keyup", (event) => {
    if (event.key === "Alt") document.documentElement.removeAttribute("data-keys");
  });
  addEventListener("blur", () => document.documentElement.removeAttribute("data-keys"));
};
