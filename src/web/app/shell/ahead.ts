// Has what a link leads to on its way before the page is asked for: its code when the pointer or the focus comes to the link, its data when
// the link is pressed. The pages that are opened most are fetched when the browser has nothing else to do.
import { exec } from "preact-iso/router";
import { prepare } from "../../browser/early.ts";
import { routes } from "./routes.ts";

const LIKELY = ["/", "/workspaces", "/workspaces/:workspace", "/chats", "/chats/:chat"] as const;

/** After the page itself has come. */
const REST_MS = 300;

/** Where the link leads within the app, as the router sees it; undefined for all others. */
const leadsTo = (event: Event): URL | undefined => {
  const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
  if (!(link instanceof HTMLAnchorElement) || link.target !== "" || link.download !== "") return undefined;
  const url = new URL(link.href);
  return url.origin === location.origin && url.pathname !== location.pathname ? url : undefined;
};

const fetchCode = ({ pathname }: URL): void => {
  const found = Object.entries(routes).find(([path]) => exec(pathname, path));
  void found?.[1].fetchAhead();
};

const onNear = (event: Event): void => {
  const url = leadsTo(event);
  if (!url) return;
  prepare(url, false);
  fetchCode(url);
};

const onPress = (event: MouseEvent): void => {
  const url = leadsTo(event);
  if (!url || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  prepare(url, true);
  fetchCode(url);
};

type Line = { readonly saveData?: boolean; readonly effectiveType?: string };

/** Nobody waits for it: not on a line that is slow or dear, and one after the other. */
const fetchLikely = ([path, ...rest]: readonly (keyof typeof routes)[]): void => {
  const { saveData, effectiveType = "4g" } = (navigator as { connection?: Line }).connection ?? {};
  if (path === undefined || saveData || effectiveType !== "4g") return;
  const fetchIt = (): void => void routes[path].fetchAhead().then(() => fetchLikely(rest));
  if ("requestIdleCallback" in window) requestIdleCallback(fetchIt);
  else setTimeout(fetchIt, REST_MS);
};

/** Begins; once for the app, when somebody is signed in. */
export const lookAhead = (): void => {
  for (const name of ["pointerover", "focusin"]) document.addEventListener(name, onNear, { passive: true });
  document.addEventListener("pointerdown", onPress, { passive: true });
  // Before the router hears of it: keys and readers of the screen press without a pointer.
  document.addEventListener("click", onPress, { capture: true });
  setTimeout(() => fetchLikely(LIKELY), REST_MS);
};
