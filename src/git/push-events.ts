// Push events as GitHub, GitLab, Gitea, Forgejo and Bitbucket send them: whether one is signed with the webhook's secret, and whether it is a push.
// Of what it says nothing is believed: the repository is read again on its host.
import { createHmac, timingSafeEqual } from "node:crypto";

/** The secret's own header. GitLab sends the secret, all others sign the bytes of the body. */
const TOKEN = "x-gitlab-token";
/** SHA-256 in hex, of Bitbucket and GitHub behind `sha256=`. */
const SIGNATURES = ["x-hub-signature-256", "x-gitea-signature", "x-forgejo-signature", "x-hub-signature"] as const;
/** Names of events; Gitea sends GitHub's, too. */
const EVENTS = ["x-github-event", "x-gitea-event", "x-forgejo-event", "x-gitlab-event", "x-event-key"] as const;
const PUSHES = new Set(["push", "push hook", "repo:push", "repo:refs_changed"]);

type Headers = { get(name: string): string | null };

/** Whether the event comes from somebody who has the secret. */
export const isSigned = (headers: Headers, body: Uint8Array, secret: string): boolean => {
  const token = headers.get(TOKEN);
  if (token !== null) return isEqual(token, secret);
  const signature = SIGNATURES.map((name) => headers.get(name)).find((value) => value !== null);
  if (signature === undefined || signature === null) return false;
  const digest = createHmac("sha256", secret).update(body).digest("hex");
  return isEqual(signature.replace(/^sha256=/, "").toLowerCase(), digest);
};

/** Whether it tells of a push; one that names no event counts as one. */
export const isPush = (headers: Headers): boolean => {
  const event = EVENTS.map((name) => headers.get(name)).find((value) => value !== null);
  return event === undefined || event === null || PUSHES.has(event.toLowerCase());
};

const isEqual = (given: string, wanted: string): boolean => {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
};
