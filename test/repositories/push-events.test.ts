// Signatures of push events, as each host creates them.
import { expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { isPush, isSigned } from "#src/git/push-events.ts";

const SECRET = "b1946ac9-2db7-4f0e-9d0f-6b1d2c3e4f50";
const body = new TextEncoder().encode('{"ref":"refs/heads/main"}');
const digest = createHmac("sha256", SECRET).update(body).digest("hex");
const createHeaders = (values: object): Headers => new Headers(values as Record<string, string>);

/** The headers of a signed push event from each host. */
export const SIGNED: Readonly<Record<string, Record<string, string>>> = {
  GitHub: { "x-github-event": "push", "x-hub-signature-256": `sha256=${digest}` },
  GitLab: { "x-gitlab-event": "Push Hook", "x-gitlab-token": SECRET },
  Gitea: { "x-gitea-event": "push", "x-github-event": "push", "x-gitea-signature": digest },
  Forgejo: { "x-forgejo-event": "push", "x-forgejo-signature": digest },
  "Bitbucket Cloud": { "x-event-key": "repo:push", "x-hub-signature": `sha256=${digest}` },
  "Bitbucket Data Center": { "x-event-key": "repo:refs_changed", "x-hub-signature": `sha256=${digest}` },
};

test.each(Object.entries(SIGNED))("[IB-6] a push event of %s requires its signature", (_, values) => {
  expect([isSigned(createHeaders(values), body, SECRET), isPush(createHeaders(values))]).toEqual([true, true]);
  expect(isSigned(createHeaders(values), body, `${SECRET}x`)).toBe(false);
  if (!values["x-gitlab-token"]) expect(isSigned(createHeaders(values), body.slice(1), SECRET)).toBe(false);
});

test("[IB-6] a missing, empty or SHA-1 signature is rejected; other events are not pushes", () => {
  const sha1 = createHmac("sha1", SECRET).update(body).digest("hex");
  const unsigned = [{}, { "x-hub-signature-256": "" }, { "x-gitlab-token": "" }, { "x-hub-signature": `sha1=${sha1}` }];
  for (const values of unsigned) expect(isSigned(createHeaders(values), body, SECRET)).toBe(false);
  const otherEvents = [
    { "x-github-event": "ping" },
    { "x-gitlab-event": "Tag Push Hook" },
    { "x-event-key": "diagnostics:ping" },
  ];
  for (const values of otherEvents) expect(isPush(createHeaders(values))).toBe(false);
});
