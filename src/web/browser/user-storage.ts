// The user's data in this browser: drafts, filters, open terminals. It is removed at sign-out, so that the next user of the browser does
// not find it. If a session only expires, the same user finds it again.

/** Keys of data that belongs to the browser: appearance and announcements. All other keys belong to a user. */
const BROWSER_KEYS = new Set(["theme", "terminal-font", "slipway.terminal-font", "banners", "banners-put-away"]);

/** The ID of the user who owns the data, in the browser's storage and in this tab's. */
export const OWNER_KEY = "kept-of";
/** The key that is set while a user is signed in, as far as this browser knows. */
export const SIGNED_IN_KEY = "signed-in";

/** True if a user was signed in when this browser last knew. The live lists then start without waiting for the session. */
export const wasSignedIn = (): boolean => localStorage.getItem(SIGNED_IN_KEY) !== null;

const clearStorage = (store: Storage): void => {
  for (const key of Object.keys(store)) if (!BROWSER_KEYS.has(key)) store.removeItem(key);
};

/** Removes all data of the user from this tab and the browser. Other tabs notice that the owner's key was removed and clear their data. */
export const clearUserData = (): void => {
  clearStorage(sessionStorage);
  localStorage.removeItem(OWNER_KEY);
  clearStorage(localStorage);
};

/** Clears this tab's own storage. */
export const clearTabData = (): void => clearStorage(sessionStorage);

/** Assigns the stored data to this user. Returns true if another user's data was removed, which the page may already show. */
export const assignOwner = (id: string): boolean => {
  let isOther = false;
  for (const store of [localStorage, sessionStorage]) {
    const owner = store.getItem(OWNER_KEY);
    if (owner === id) continue;
    // A new tab, or data stored before owners were recorded, by a user who is still signed in.
    const isUnknown = owner === null && wasSignedIn();
    if (!isUnknown) {
      clearStorage(store);
      isOther ||= owner !== null;
    }
    store.setItem(OWNER_KEY, id);
  }
  return isOther;
};

/** Returns the current owner of the browser's data, which another tab may have set. */
export const getStoredOwner = (): string | null => localStorage.getItem(OWNER_KEY);
