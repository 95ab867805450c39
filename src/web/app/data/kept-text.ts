// Texts that are not sent or saved yet, kept by the browser. Each tab keeps its own, so that two on one page do not take each other's words;
// a tab that begins without one continues with the last of all.

/** Throws where the browser forbids it; nothing is kept then. */
export const keptText = (key: string): string | undefined => {
  const own = sessionStorage.getItem(key);
  // Empty: this tab has done with it, whatever the others do.
  if (own !== null) return own || undefined;
  const last = localStorage.getItem(key) ?? undefined;
  if (last !== undefined) sessionStorage.setItem(key, last);
  return last;
};

/** `undefined` when there is nothing more to keep: what another tab keeps stays. */
export const keepText = (key: string, text: string | undefined): void => {
  if (text !== undefined) {
    sessionStorage.setItem(key, text);
    localStorage.setItem(key, text);
    return;
  }
  if (localStorage.getItem(key) === sessionStorage.getItem(key)) localStorage.removeItem(key);
  sessionStorage.setItem(key, "");
};
