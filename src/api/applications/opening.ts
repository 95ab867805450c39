// Decides whether a request means that a person is opening a page. Only these start a workspace. Subresources, script requests, prefetches,
// pages that reload themselves, and monitors do not (rule WO-3). Pure.
import { acceptsPage } from "../http/plain-page.ts";

/** Query parameter with the build that a page is waiting for. */
export const WAIT_PARAMETER = "service_app_wait";

/** Returns whether the browser is prefetching the page. */
const isPrefetch = (headers: Headers): boolean =>
  ["purpose", "sec-purpose", "x-purpose", "x-moz"].some((name) =>
    /prefetch|prerender|preview/i.test(headers.get(name) ?? ""),
  );

/** Returns whether the request is for a page, including one that reloads itself. */
export const isPage = (request: Request): boolean => {
  const { method, headers } = request;
  const mode = headers.get("sec-fetch-mode");
  return method === "GET" && acceptsPage(request) && !isPrefetch(headers) && (mode === null || mode === "navigate");
};

/**
 * Returns whether a person is opening the page. A page in a frame, or one that reloads itself, qualifies only after the person has clicked
 * or typed in it: development servers make their pages reload when the workspace stops. Browsers without these headers are trusted.
 */
export const isOpeningPage = (request: Request): boolean => {
  const { headers } = request;
  const dest = headers.get("sec-fetch-dest");
  const hasActivation = headers.get("sec-fetch-user") === "?1";
  if (!isPage(request)) return false;
  if (hasActivation) return true;
  return (dest === null || dest === "document") && headers.get("sec-fetch-site") !== "same-origin";
};
