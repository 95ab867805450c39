// Push events from GitHub, GitLab, Gitea, Forgejo and Bitbucket: verifies the webhook's signature and detects pushes. The event's content
// is not trusted: the repository is read from its host.
import { createHmac, timingSafeEqual } from "node:crypto";

/** GitLab sends the secret itself in this header; all others sign the body. */
const TOKEN_HEADER = "x-gitlab-token";
/** SHA-256 in hex; Bitbucket and GitHub add the prefix `sha256=`. */
const SIGNATURE_HEADERS = [
  "x-hub-signature-256",
  "x-gitea-signature",
  "x-forgejo-signature",
  "x-hub-signature",
] as const;
/** Headers with the event's name; Gitea also sends GitHub's. */
const EVENT_HEADERS = ["x-github-event", "x-gitea-event", "x-forgejo-event", "x-gitlab-event", "x-event-key"] as const;
const PUSH_EVENTS = new Set(["push", "push hook", "repo:push", "repo:refs_changed"]);

type Headers = { get(name: string): string | null };

/** Returns whether the sender knows the secret. */
export const isSigned = (headers: Headers, body: Uint8Array, secret: string): boolean => {
  const token = headers.get(TOKEN_HEADER);
  if (token !== null) return isEqual(token, secret);
  const signature = SIGNATURE_HEADERS.map((name) => headers.get(name)).find((value) => value !== null);
  if (signature === undefined || signature === null) return false;
  const digest = createHmac("sha256", secret).update(body).digest("hex");
  return isEqual(signature.replace(/^sha256=/, "").toLowerCase(), digest);
};

/** Returns whether this is a push event, or an event without a name. */
export const isPush = (headers: Headers): boolean => {
  const event = EVENT_HEADERS.map((name) => headers.get(name)).find((value) => value !== null);
  return event === undefined || event === null || PUSH_EVENTS.has(event.toLowerCase());
};

const isEqual = (received: string, expected: string): boolean => {
  const [a, b] = [Buffer.from(received), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
};
