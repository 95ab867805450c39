// Starts loading before the app renders: the session, the live lists, the code of the page. Most of it was requested in the head of the
// page (../early.ts), so that the first paint has its content.

import { wasSignedIn } from "../../browser/user-storage.ts";
import { goToSignIn, Problem } from "../data/api.ts";
import { followChats } from "../data/chats.ts";
import { loadSession, me } from "../data/session.ts";
import { firstWorkspaces, followWorkspaces } from "../data/workspaces.ts";
import { fetchCode } from "./prefetch.ts";
import { signInRoutes } from "./routes.ts";
import { showError } from "./toasts.tsx";

/** Maximum wait for content before the first render, measured from the start of the page load. */
const MAX_WAIT_MS = 300;
/** Minimum wait if the page itself arrived late: content may be about to arrive. */
const MIN_WAIT_MS = 100;

/** Pages whose content is the list of workspaces. */
const WORKSPACE_PAGES = new Set(["/", "/workspaces"]);

const followLists = (): void => {
  followWorkspaces();
  followChats();
};

let session: Promise<void> | undefined;

const MIN_RETRY_MS = 500;
const MAX_RETRY_MS = 15_000;

const isTemporary = (error: unknown): boolean =>
  error instanceof Problem && (error.status === 0 || error.status === 429 || error.status >= 500);

/** Loads the session. While the server does not respond, shows that and retries. */
const loadSessionWithRetries = async (): Promise<void> => {
  for (let delayMs = MIN_RETRY_MS; ; delayMs = Math.min(2 * delayMs, MAX_RETRY_MS)) {
    try {
      return await loadSession();
    } catch (error) {
      if (!isTemporary(error)) throw error;
      if (delayMs > MIN_RETRY_MS) showError(error);
      await new Promise((resolve) => setTimeout(resolve, delayMs));
    }
  }
};

/** Follows the live lists and loads the session, once for the app. Redirects to the sign-in page if there is no session. */
export const startSession = (): Promise<void> => {
  if (!session && wasSignedIn()) followLists();
  session ??= loadSessionWithRetries()
    .then(() => {
      if (me.value === null) return goToSignIn();
      followLists();
      // The browser's push subscription ended with the previous session: the worker registers it for this one.
      navigator.serviceWorker?.controller?.postMessage({ signed_in: true });
    })
    .catch(showError);
  return session;
};

/** Resolves when the content of the page's first paint is loaded, or when the wait has timed out. */
export const waitForContent = async (pathname: string): Promise<void> => {
  const lists = WORKSPACE_PAGES.has(pathname) ? [firstWorkspaces] : [];
  const loads = [fetchCode(pathname), ...(pathname in signInRoutes ? [] : [startSession(), ...lists])];
  const timeout = new Promise((resolve) => setTimeout(resolve, Math.max(MIN_WAIT_MS, MAX_WAIT_MS - performance.now())));
  await Promise.race([Promise.all(loads), timeout]);
};
