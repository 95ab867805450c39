// Unsent and unsaved texts, stored by the browser. Each tab keeps its own, so that two tabs on one page do not overwrite each other. A new
// tab starts with the text that was stored last.

/** Returns the stored text. Throws if the browser forbids storage; nothing is stored then. */
export const loadStoredText = (key: string): string | undefined => {
  const tabText = sessionStorage.getItem(key);
  // An empty value means that this tab has sent or cleared its text, whatever other tabs store.
  if (tabText !== null) return tabText || undefined;
  const last = localStorage.getItem(key) ?? undefined;
  if (last !== undefined) sessionStorage.setItem(key, last);
  return last;
};

/** Stores the text; `undefined` clears it. Texts of other tabs are not changed. */
export const storeText = (key: string, text: string | undefined): void => {
  if (text !== undefined) {
    sessionStorage.setItem(key, text);
    localStorage.setItem(key, text);
    return;
  }
  if (localStorage.getItem(key) === sessionStorage.getItem(key)) localStorage.removeItem(key);
  sessionStorage.setItem(key, "");
};
