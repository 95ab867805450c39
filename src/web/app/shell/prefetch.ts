// Prefetches the target of a link: its code on hover or focus, its data when the link is pressed. The most used pages are fetched while the
// browser is idle.
import { exec } from "preact-iso/router";
import { clearPrefetched, prepare } from "../../browser/early.ts";
import { routes, signInRoutes } from "./routes.ts";

const LIKELY_PAGES = ["/", "/workspaces", "/workspaces/:workspace", "/chats", "/chats/:chat"] as const;

/** A press that has not become a click by then is not a navigation. */
const PRESS_TIMEOUT_MS = 1_000;

/** Delay after the current page has loaded. */
const START_DELAY_MS = 300;

/** Returns the link's target within the app, as the router sees it; undefined for other links. */
const findTarget = (event: Event): URL | undefined => {
  const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
  if (!(link instanceof HTMLAnchorElement) || link.target !== "" || link.download !== "") return undefined;
  const url = new URL(link.href);
  return url.origin === location.origin && url.pathname !== location.pathname ? url : undefined;
};

/** Resolves when the code of the page is loaded or cannot be loaded. */
export const fetchCode = async (pathname: string): Promise<void> => {
  const match = Object.entries({ ...routes, ...signInRoutes }).find(([path]) => exec(pathname, path));
  await match?.[1].prefetch();
};

const onHover = (event: Event): void => {
  const url = findTarget(event);
  if (!url) return;
  prepare(url, false);
  void fetchCode(url.pathname);
};

/** The link under a pressed pointer. */
let pressedUrl: string | undefined;
let releaseTimer: ReturnType<typeof setTimeout> | undefined;

const clearPress = (): void => {
  pressedUrl = undefined;
  clearPrefetched();
};

const onPress = (event: MouseEvent): void => {
  const url = findTarget(event);
  if (!url || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  // Discards data prefetched for another link that was not followed; it would be outdated.
  if (pressedUrl !== undefined && pressedUrl !== url.href) clearPrefetched();
  clearTimeout(releaseTimer);
  pressedUrl = event.type === "click" ? undefined : url.href;
  if (pressedUrl !== undefined) releaseTimer = setTimeout(clearPress, PRESS_TIMEOUT_MS);
  prepare(url, true);
  void fetchCode(url.pathname);
};

type NetworkInformation = { readonly saveData?: boolean; readonly effectiveType?: string };

/** Fetches at low priority: one page after another, and not on slow or metered connections. */
const fetchPages = ([path, ...rest]: readonly (keyof typeof routes)[]): void => {
  const { saveData, effectiveType = "4g" } = (navigator as { connection?: NetworkInformation }).connection ?? {};
  if (path === undefined || saveData || effectiveType !== "4g") return;
  const fetchNext = (): void => void routes[path].prefetch().then(() => fetchPages(rest));
  if ("requestIdleCallback" in window) requestIdleCallback(fetchNext);
  else setTimeout(fetchNext, START_DELAY_MS);
};

/** Starts prefetching. Called once for the app after sign-in. */
export const startPrefetching = (): void => {
  for (const name of ["pointerover", "focusin"]) document.addEventListener(name, onHover, { passive: true });
  document.addEventListener("pointerdown", onPress, { passive: true });
  // Runs before the router's handler; the keyboard and screen readers click without a pointer event.
  document.addEventListener("click", onPress, { capture: true });
  setTimeout(() => fetchPages(LIKELY_PAGES), START_DELAY_MS);
};
