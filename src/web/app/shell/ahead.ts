// Has what a link leads to on its way before the page is asked for: its code when the pointer or the focus comes to the link, its data when
// the link is pressed. The pages that are opened most are fetched when the browser has nothing else to do.
import { exec } from "preact-iso/router";
import { forgetEarly, prepare } from "../../browser/early.ts";
import { doors, routes } from "./routes.ts";

const LIKELY = ["/", "/workspaces", "/workspaces/:workspace", "/chats", "/chats/:chat"] as const;

/** A press that has not become a click by then is no step to the page. */
const FOLLOWED_MS = 1_000;

/** After the page itself has come. */
const REST_MS = 300;

/** Where the link leads within the app, as the router sees it; undefined for all others. */
const leadsTo = (event: Event): URL | undefined => {
  const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
  if (!(link instanceof HTMLAnchorElement) || link.target !== "" || link.download !== "") return undefined;
  const url = new URL(link.href);
  return url.origin === location.origin && url.pathname !== location.pathname ? url : undefined;
};

/** Resolves when the code of the page at this path is here, or cannot be had. */
export const fetchCode = async (pathname: string): Promise<void> => {
  const found = Object.entries({ ...routes, ...doors }).find(([path]) => exec(pathname, path));
  await found?.[1].fetchAhead();
};

const onNear = (event: Event): void => {
  const url = leadsTo(event);
  if (!url) return;
  prepare(url, false);
  void fetchCode(url.pathname);
};

/** The link under a pointer that went down and has not come up again. */
let pressed: string | undefined;
let letGo: ReturnType<typeof setTimeout> | undefined;

const forgetPress = (): void => {
  pressed = undefined;
  forgetEarly();
};

const onPress = (event: MouseEvent): void => {
  const url = leadsTo(event);
  if (!url || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  // What was asked for another link, which was not followed, is old when someone comes there after all.
  if (pressed !== undefined && pressed !== url.href) forgetEarly();
  clearTimeout(letGo);
  pressed = event.type === "click" ? undefined : url.href;
  if (pressed !== undefined) letGo = setTimeout(forgetPress, FOLLOWED_MS);
  prepare(url, true);
  void fetchCode(url.pathname);
};

type Line = { readonly saveData?: boolean; readonly effectiveType?: string };

/** Low priority: not on slow or metered connections, and one after the other. */
const fetchLikely = ([path, ...rest]: readonly (keyof typeof routes)[]): void => {
  const { saveData, effectiveType = "4g" } = (navigator as { connection?: Line }).connection ?? {};
  if (path === undefined || saveData || effectiveType !== "4g") return;
  const fetchIt = (): void => void routes[path].fetchAhead().then(() => fetchLikely(rest));
  if ("requestIdleCallback" in window) requestIdleCallback(fetchIt);
  else setTimeout(fetchIt, REST_MS);
};

/** Begins; once for the app, when someone is signed in. */
export const lookAhead = (): void => {
  for (const name of ["pointerover", "focusin"]) document.addEventListener(name, onNear, { passive: true });
  document.addEventListener("pointerdown", onPress, { passive: true });
  // Before the router hears of it: keys and readers of the screen press without a pointer.
  document.addEventListener("click", onPress, { capture: true });
  setTimeout(() => fetchLikely(LIKELY), REST_MS);
};
