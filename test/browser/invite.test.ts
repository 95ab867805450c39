// Inviting colleagues and joining, in a real browser, with a real sign-in provider.
import { expect } from "bun:test";
import { CLIENT, OidcServer } from "#test/api/oidc/provider.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { seedTemplate } from "#test/support/workspaces.ts";
import { listPageErrors, runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node],
  "[IV-9] [OI-12] a team lead invites colleagues in the browser; one joins on a phone and has a workspace after two clicks",
  async () => {
    await using idp = await OidcServer.start();
    const provider = { id: "acme", display_name: "Acme", issuer: idp.issuer, ...CLIENT, sign_up: true };
    const mapping = { roles: { platform: ["auditor"] } };
    await using server = await startTestServer({
      env: {
        SLIPWAY_OIDC_PROVIDERS: JSON.stringify([Object.assign(provider, mapping)]),
        SLIPWAY_ALLOWED_PRIVATE_NETWORKS: "127.0.0.0/8",
      },
    });
    idp.register([new URL("/api/v2/users/oidc/acme/callback", server.url).href]);
    idp.person = {
      sub: "tia",
      email: "tia@example.com",
      email_verified: true,
      preferred_username: "tia",
      groups: ["/platform"],
    };
    const result = await runStory("invite.mjs", [server.url.href, ADMIN.email, ADMIN.password], {
      template: () => seedTemplate(server),
    });
    expect(result).toMatchObject({
      problems: [],
      hashAfterTest: "",
      remark: expect.stringContaining('"/platform" does not match "platform"'),
      noMailReason: expect.stringContaining("no SMTP server is configured (smtp_host)"),
      refused: '"not an address" doesn\'t contain an email address.',
      warning: expect.stringContaining("The people you invite cannot create workspaces"),
      providers: 1,
      contact: expect.stringContaining(ADMIN.username),
      secondUse: expect.stringContaining("This invitation does not exist."),
    });
    expect(listPageErrors(result)).toEqual([]);
  },
  scaleTimeout(300_000),
);
