// Whether a request is a person who opens a page now. All else happens in the background and starts nothing: parts of a page, calls of its
// scripts, what a browser fetches ahead, pages that reload themselves, monitors (rule WO-3). Pure.
import { wantsPage } from "../http/plain-page.ts";

/** The build that a page waits for, in its own query. */
export const WAITS = "service_app_wait";

/** True for a browser that gets a page ahead of time, in case it will be opened. */
const isAhead = (headers: Headers): boolean =>
  ["purpose", "sec-purpose", "x-purpose", "x-moz"].some((name) =>
    /prefetch|prerender|preview/i.test(headers.get(name) ?? ""),
  );

/** True for a page, as one looks at it: also one that reloads itself. */
export const isPage = (request: Request): boolean => {
  const { method, headers } = request;
  const mode = headers.get("sec-fetch-mode");
  return method === "GET" && wantsPage(request) && !isAhead(headers) && (mode === null || mode === "navigate");
};

/**
 * True where a person opens it. A frame in another page, and a page that loads itself again (as development servers have them do when the
 * workspace stops), count only when the person has pressed something there. Browsers that say nothing of all this are believed.
 */
export const opensPage = (request: Request): boolean => {
  const { headers } = request;
  const dest = headers.get("sec-fetch-dest");
  const pressed = headers.get("sec-fetch-user") === "?1";
  if (!isPage(request)) return false;
  if (pressed) return true;
  return (dest === null || dest === "document") && headers.get("sec-fetch-site") !== "same-origin";
};
