// Linking external accounts in a real browser, with a fake provider that implements the real protocol.
import { expect } from "bun:test";
import { FakeProvider } from "#test/api/external-auth/provider.ts";
import { startWith } from "#test/api/external-auth/world.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN } from "#test/support/server.ts";
import { runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node],
  "[EA-20] links accounts by sign-in and by device code, with mouse and keyboard, declines access, and unlinks",
  async () => {
    using provider = new FakeProvider();
    provider.interval = 1;
    await using server = await startWith([provider.setting("web"), provider.setting("codes", { device_flow: true })]);
    const args = [server.url.href, provider.url.href, ADMIN.email, ADMIN.password];
    const result = await runStory("external-auth.mjs", args);
    expect(result).toMatchObject({
      // Neither code nor state remains in the URL.
      after: new URL("/external-auth/web", server.url).href,
      devicePage: new URL("/device", provider.url).href,
      kept: "Linked",
      unlinked: "Not linked",
      declined: "You declined access at Git of web.",
      leftInAddress: "",
    });
    expect(result.key).toMatch(/^ssh-ed25519 /);
    expect(result.otherSessionError).toContain("not started in this session");
    const allowedOrigins = [server.url.origin, provider.url.origin, "data:"];
    expect(result.requests.filter((url) => !allowedOrigins.some((origin) => url.startsWith(origin)))).toEqual([]);
    expect(result.consoleErrors.filter((text) => !text.startsWith("Failed to load resource"))).toEqual([]);
  },
  // The machine may be busy with other tests.
  scaleTimeout(180_000),
);
