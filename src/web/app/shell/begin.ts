// What the app begins with before it draws anything: who is signed in, the live lists, the code of the page. Most of it was asked for in
// the head of the page (../early.ts) and is here by now, so that the first picture has its content.

import { wasSignedIn } from "../../browser/kept.ts";
import { toSignIn } from "../data/api.ts";
import { followChats } from "../data/chats.ts";
import { me, readSession } from "../data/session.ts";
import { firstWorkspaces, followWorkspaces } from "../data/workspaces.ts";
import { fetchCode } from "./ahead.ts";
import { doors } from "./routes.ts";
import { failed } from "./toasts.tsx";

/** From the beginning of the page on, nothing is drawn for so long if its content may still come. */
const PATIENCE_MS = 300;
/** Where the page itself came late, what is all but here may still come. */
const MIN_MS = 100;

/** Pages whose content is the list of workspaces. */
const OF_WORKSPACES = new Set(["/", "/workspaces"]);

const follow = (): void => {
  followWorkspaces();
  followChats();
};

let session: Promise<void> | undefined;

/** Follows the live lists and reads who is signed in, once for the app. Who is not goes to the sign-in page. */
export const beginSession = (): Promise<void> => {
  if (!session && wasSignedIn()) follow();
  session ??= readSession()
    .then(() => (me.value === null ? toSignIn() : follow()))
    .catch(failed);
  return session;
};

/** Resolves when the first picture of the page at this path can show its content, or when it is time to draw without. */
export const readyToDraw = async (pathname: string): Promise<void> => {
  const rows = OF_WORKSPACES.has(pathname) ? [firstWorkspaces] : [];
  const wanted = [fetchCode(pathname), ...(pathname in doors ? [] : [beginSession(), ...rows])];
  const patience = new Promise((resolve) => setTimeout(resolve, Math.max(MIN_MS, PATIENCE_MS - performance.now())));
  await Promise.race([Promise.all(wanted), patience]);
};
