// Global keyboard shortcuts: Ctrl/Cmd-K, and sequences of two letters such as G W. Hints are shown while Alt is held. Shortcuts are ignored
// while the user types in a field.

type Handler = (event: KeyboardEvent) => void;

const handlers = new Map<string, Handler>();
const SEQUENCE_TIMEOUT_MS = 900;
let firstKey = "";
let firstKeyAt = 0;

/** `keys` is one key (`n`), a sequence (`g w`), or one with the command key (`mod+k`). Returns a function that removes the shortcut. */
export const onKeys = (keys: string, act: Handler): (() => void) => {
  handlers.set(keys, act);
  return () => {
    if (handlers.get(keys) === act) handlers.delete(keys);
  };
};

// Events from a shadow root, such as the code editor's, have its host as target; the composed path starts at the real target.
const isTextField = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) &&
  !(target instanceof HTMLInputElement && /^(checkbox|radio|button|range)$/.test(target.type));

const onKeyDown = (event: KeyboardEvent): void => {
  const key = event.key.toLowerCase();
  document.documentElement.toggleAttribute("data-keys", event.altKey);
  if (event.ctrlKey || event.metaKey) {
    const handler = handlers.get(`mod+${key}`);
    if (!handler || event.shiftKey || event.altKey) return;
    event.preventDefault();
    handler(event);
    return;
  }
  if (event.altKey || isTextField(event.composedPath()[0] ?? null) || document.querySelector("dialog[open]")) return;
  const sequence = event.timeStamp - firstKeyAt < SEQUENCE_TIMEOUT_MS ? `${firstKey} ${key}` : "";
  const handler = handlers.get(sequence) ?? handlers.get(key);
  [firstKey, firstKeyAt] = [key, event.timeStamp];
  if (!handler) return;
  event.preventDefault();
  handler(event);
};

export const listenForKeys = (): void => {
  addEventListener("keydown", onKeyDown);
  addEventListener("keyup", (event) => {
    if (event.key === "Alt") document.documentElement.removeAttribute("data-keys");
  });
  addEventListener("blur", () => document.documentElement.removeAttribute("data-keys"));
};
