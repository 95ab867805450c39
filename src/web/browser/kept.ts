// The user's data in this browser: drafts, filters, open terminals. It is removed at sign-out, so that the next user of the browser does
// not find it. If a session only expires, the same user finds it again.

/** Stored for the browser, not for a user: appearance and announcements. All other keys belong to a user. */
const OF_BROWSER = new Set(["theme", "terminal-font", "slipway.terminal-font", "banners", "banners-put-away"]);

/** The ID of the user who owns the data, in the browser's storage and in this tab's. */
export const OWNER = "kept-of";
/** Set while a user is signed in, as far as this browser knows. */
export const HINT = "signed-in";

/** If true, the live lists start without waiting for the session. */
export const wasSignedIn = (): boolean => localStorage.getItem(HINT) !== null;

const forgetIn = (store: Storage): void => {
  for (const key of Object.keys(store)) if (!OF_BROWSER.has(key)) store.removeItem(key);
};

/** Removes all data of the user from this tab and the browser. Other tabs see that OWNER was removed and clear theirs. */
export const forgetPerson = (): void => {
  forgetIn(sessionStorage);
  localStorage.removeItem(OWNER);
  forgetIn(localStorage);
};

/** Clears this tab's own storage. */
export const forgetInTab = (): void => forgetIn(sessionStorage);

/** Assigns the stored data to this user. Returns true if another user's data was removed, which the page may already show. */
export const assignOwner = (id: string): boolean => {
  let isOther = false;
  for (const store of [localStorage, sessionStorage]) {
    const owner = store.getItem(OWNER);
    if (owner === id) continue;
    // A new tab, or data stored before owners were recorded, by a user who is still signed in.
    const isUnknown = owner === null && wasSignedIn();
    if (!isUnknown) {
      forgetIn(store);
      isOther ||= owner !== null;
    }
    store.setItem(OWNER, id);
  }
  return isOther;
};

/** Returns the current owner of the browser's data, which another tab may have set. */
export const keptOwner = (): string | null => localStorage.getItem(OWNER);
