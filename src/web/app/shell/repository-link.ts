// Links to repositories that are typed or pasted somewhere in the app lead to the page that opens them, which reads them properly.
import type { Entry } from "./commands.ts";

const LINK = /^(?:https?:\/\/|ssh:\/\/|git@)[^\s/]+[/:]\S+$/;

/** What is pasted outside of a field is taken for a repository on hosts of code, by their names, and on any host where it ends with .git. */
const KNOWN =
  /^(?:git@|ssh:\/\/git@)|^https?:\/\/[^/]*\b(?:github|gitlab|gitea|forgejo|codeberg|bitbucket)\b[^/]*\/[^/]+\/.|^https?:\/\/[^/]+\/\S+\.git$/i;

const pageOf = (link: string): string => `/new?${new URLSearchParams({ repo: link })}`;

/** What the palette offers for such a link. */
export const repositoryEntries = (words: string): Entry[] => {
  const link = words.trim();
  return LINK.test(link)
    ? [{ group: "Repository", icon: "branch", label: "Open this repository", note: link, href: pageOf(link) }]
    : [];
};

/** Opens the page of a link to a repository that is pasted where nothing takes it. Returns how to take that back. */
export const onRepositoryPaste = (route: (path: string) => void): (() => void) => {
  const pasted = (event: ClipboardEvent): void => {
    const target = event.composedPath()[0];
    const isTaken =
      target instanceof HTMLElement &&
      (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT|CANVAS)$/.test(target.tagName));
    if (isTaken || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const link = event.clipboardData?.getData("text/plain").trim() ?? "";
    if (link.length <= 2_048 && LINK.test(link) && KNOWN.test(link)) route(pageOf(link));
  };
  addEventListener("paste", pasted);
  return () => removeEventListener("paste", pasted);
};
