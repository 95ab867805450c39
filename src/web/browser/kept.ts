// What this browser keeps of a person: drafts, filters, which terminals are open. It goes with them: anyone who comes after them at this
// browser finds none of it. A sign-in that has merely expired leaves it to the same person.

/** Stored for the browser, not for a user: appearance and announcements. All other keys belong to a user. */
const OF_BROWSER = new Set(["theme", "terminal-font", "slipway.terminal-font", "banners", "banners-put-away"]);

/** Whose the rest is, in either store: of the browser, and of this tab. */
export const OWNER = "kept-of";
/** Someone was signed in here last. */
export const HINT = "signed-in";

/** The live lists need not wait until it is known that someone still is. */
export const wasSignedIn = (): boolean => localStorage.getItem(HINT) !== null;

const forgetIn = (store: Storage): void => {
  for (const key of Object.keys(store)) if (!OF_BROWSER.has(key)) store.removeItem(key);
};

/** Everything of the person, here and in the browser; other tabs hear that OWNER goes, and forget what is theirs. */
export const forgetPerson = (): void => {
  forgetIn(sessionStorage);
  localStorage.removeItem(OWNER);
  forgetIn(localStorage);
};

/** What a tab keeps on its own. */
export const forgetInTab = (): void => forgetIn(sessionStorage);

/** From now on this is theirs. True when something of someone else was forgotten, which a page may show already. */
export const keepFor = (id: string): boolean => {
  let isOther = false;
  for (const store of [localStorage, sessionStorage]) {
    const owner = store.getItem(OWNER);
    if (owner === id) continue;
    // A new tab, or what was kept before owners were noted, by anyone who is signed in still.
    const isUnknown = owner === null && wasSignedIn();
    if (!isUnknown) {
      forgetIn(store);
      isOther ||= owner !== null;
    }
    store.setItem(OWNER, id);
  }
  return isOther;
};

/** Whose the things of the browser are now, as other tabs have it. */
export const keptOwner = (): string | null => localStorage.getItem(OWNER);
