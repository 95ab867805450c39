// The pages in a real browser: a person's first hour. Node drives Chromium, because launching it hangs under Bun.
import { expect } from "bun:test";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { startTestServer } from "#test/support/server.ts";
import { runStory } from "./story.ts";

const WITHOUT_ADMIN = { SLIPWAY_ADMIN_EMAIL: "", SLIPWAY_ADMIN_USERNAME: "", SLIPWAY_ADMIN_PASSWORD: "" };
// The process itself prints the setup link, so the story runs with the server in-process.
const inProcess = { found: !process.env.SLIPWAY_TEST_BINARY, reason: "needs the server in this process", file: "" };

testNeeding(
  [needs.chromium, needs.node, inProcess],
  "[PG-1] [PG-2] [PG-3] [PG-4] [PG-5] a person sets up the server, signs in, and manages tokens and access requests, by keyboard and on a phone, without requests to other hosts",
  async () => {
    await using server = await startTestServer({ env: { ...WITHOUT_ADMIN, SLIPWAY_OAUTH2_PROVIDER: "true" } });
    const link = (await server.context?.setupUrl()) ?? "";
    const { requests, consoleErrors, ...result } = await runStory("pages.mjs", [link]);
    expect(result).toMatchObject({
      afterSetup: "/",
      lifetimes: ["7 days", "Custom date"],
      before: 200,
      afterCancel: 200,
      after: 401,
      session: 200,
      stays: "/oauth2/authorize",
      scopes: ["See your workspaces", "Run programs and read and write files in your workspaces"],
      staysOnServer: true,
      focusAfterDelete: "main",
      focusAfterRefusal: "Create token",
      misfits: [],
    });
    expect(result.weak).toContain("easy to guess");
    expect(result.refused).toContain("Incorrect email or password.");
    expect(result.taken).toContain("already in use");
    expect(requests.length).toBeGreaterThan(20);
    expect(
      requests.filter(
        (url) => !url.startsWith(server.url.origin) && !/^(?:data:|http:\/\/127\.0\.0\.1:9\/back)/.test(url),
      ),
    ).toEqual([]);
    // Messages about failed requests are expected.
    expect(consoleErrors.filter((text) => !text.startsWith("Failed to load resource"))).toEqual([]);
  },
  // The machine may be busy with other tests.
  scaleTimeout(180_000),
);
