// Signing in redirects to the previous page, and never to another site.
import { expect, test } from "bun:test";
import { getRedirectTarget } from "#src/web/browser/redirect-target.ts";

const ORIGIN = "https://slipway.example";

test.each([
  ["/settings/tokens", "/settings/tokens"],
  ["/cli-auth?for=me", "/cli-auth?for=me"],
  [undefined, "/"],
])("[PG-3] the redirect for %s is %s", (requested, expected) => {
  const query = requested === undefined ? "" : `?redirect=${encodeURIComponent(requested)}`;
  expect(getRedirectTarget(query, ORIGIN)).toBe(ORIGIN + expected);
});

test.each([
  "//evil.example/",
  "/\\evil.example",
  "/..//evil.example",
  "/.//evil.example",
  "/a/../..//evil.example",
  "/\t/evil.example",
  "https://evil.example/",
  "javascript:alert(1)",
  "//[",
  "",
])("[PG-3] a redirect to %j stays on this site", (requested) => {
  const target = getRedirectTarget(`?redirect=${encodeURIComponent(requested)}`, ORIGIN);
  expect(target).toStartWith(`${ORIGIN}/`);
  expect(new URL(target, `${ORIGIN}/login`).origin).toBe(ORIGIN);
});
