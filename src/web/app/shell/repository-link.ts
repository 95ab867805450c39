// Detects repository links that are typed or pasted anywhere in the app, and opens the page that parses them properly.
import type { Entry } from "./commands.ts";

const LINK_PATTERN = /^(?:https?:\/\/|ssh:\/\/|git@)[^\s/]+[/:]\S+$/;

/** Text pasted outside a field is treated as a repository on hosts with well-known names, and on any host if it ends with .git. */
const KNOWN_HOST_PATTERN =
  /^(?:git@|ssh:\/\/git@)|^https?:\/\/[^/]*\b(?:github|gitlab|gitea|forgejo|codeberg|bitbucket)\b[^/]*\/[^/]+\/.|^https?:\/\/[^/]+\/\S+\.git$/i;

const toPageUrl = (link: string): string => `/new?${new URLSearchParams({ repo: link })}`;

/** Returns the palette entries for a repository link. */
export const listRepositoryEntries = (text: string): Entry[] => {
  const link = text.trim();
  return LINK_PATTERN.test(link)
    ? [{ group: "Repository", icon: "branch", label: "Open this repository", note: link, href: toPageUrl(link) }]
    : [];
};

/** Opens the page of a repository link that is pasted outside any field. Returns a function that stops listening. */
export const onRepositoryPaste = (route: (path: string) => void): (() => void) => {
  const onPaste = (event: ClipboardEvent): void => {
    const target = event.composedPath()[0];
    const isTextField =
      target instanceof HTMLElement &&
      (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT|CANVAS)$/.test(target.tagName));
    if (isTextField || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const link = event.clipboardData?.getData("text/plain").trim() ?? "";
    if (link.length <= 2_048 && LINK_PATTERN.test(link) && KNOWN_HOST_PATTERN.test(link)) route(toPageUrl(link));
  };
  addEventListener("paste", onPaste);
  return () => removeEventListener("paste", onPaste);
};
