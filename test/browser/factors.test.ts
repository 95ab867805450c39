// Second factors and passkeys in a real browser, with Chromium's virtual authenticator.
import { expect } from "bun:test";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { runStory } from "./story.ts";

const inProcess = { found: !process.env.SLIPWAY_TEST_BINARY, reason: "needs the server in this process", file: "" };

testNeeding(
  [needs.chromium, needs.node, inProcess],
  "[PK-2] [PK-4] [FA-10] a person who must have a second factor sets up an app and a passkey, and signs in with each",
  async () => {
    await using running = await startTestServer({ env: { SLIPWAY_REQUIRE_SECOND_FACTOR: "everyone" } });
    const { context } = running;
    if (!context) throw new Error("there is no server in this process");
    // Browsers do not accept an IP address as a passkey domain.
    context.accessUrl = new URL(`http://localhost:${running.url.port}/`);
    const args = [context.accessUrl.href, ADMIN.email, ADMIN.password];
    const { requests, consoleErrors, ...result } = await runStory("factors.mjs", args);
    expect(result).toMatchObject({
      redirectedTo: "/account/security",
      qr: true,
      recovery: 10,
      focus: "Your recovery codes",
      credentials: 1,
      afterPasskey: "/account/security",
      misfits: [],
    });
    expect(result.wrongCode).toContain("doesn't match");
    expect(result.refused).toContain("wrong or was used");
    const origin = context.accessUrl.origin;
    expect(requests.filter((url) => !url.startsWith(origin) && !url.startsWith("data:"))).toEqual([]);
    // Messages about failed requests are expected.
    expect(
      consoleErrors.filter((text) => !/^Failed to load resource|Unexpected response code: 403$/.test(text)),
    ).toEqual([]);
  },
  scaleTimeout(180_000),
);
