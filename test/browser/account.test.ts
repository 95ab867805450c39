// The account pages in a real browser, on a real server.
import { expect } from "bun:test";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node],
  "[PG-3] [WB-4] [WB-6] [WB-22] a person manages their profile, password, sessions, tokens, Git key, skills and permissions in the browser",
  async () => {
    await using server = await startTestServer();
    const args = [server.url.href, ADMIN.email, ADMIN.password];
    const result = await runStory<{ keys: [string, string] }>("account.mjs", args);
    expect(result).toMatchObject({
      problems: [],
      ended: 401,
      tokensAt: "/account/tokens",
      statusInScope: 200,
      statusOutsideScope: 403,
      shownAgain: false,
    });
    expect(result.passwordError).toContain("password");
    expect(result.addressError).toContain("nowhere");
    expect(result.skillErrors).toEqual(["Must be lowercase words separated by hyphens"]);
    const [before, after] = result.keys;
    expect(before).toStartWith("ssh-ed25519 ");
    expect(after).toStartWith("ssh-ed25519 ");
    expect(after).not.toBe(before);
    expect(result.requests.filter((url) => !url.startsWith(server.url.origin) && !url.startsWith("data:"))).toEqual([]);
    const login = await fetch(new URL("/api/v2/users/login", server.url), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ email: ADMIN.email, password: "four quiet harbours at night" }),
    });
    const { session_token } = (await login.json()) as { session_token: string };
    const permissionsResponse = await fetch(new URL("/api/v2/chats/config/user-permissions", server.url), {
      headers: { "service-session-token": session_token },
    });
    expect(await permissionsResponse.json()).toEqual({
      permissions: { default: "ask", rules: [{ tool: "execute", command: "git status", action: "allow" }] },
    });
  },
  scaleTimeout(180_000),
);
