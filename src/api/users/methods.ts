// What people can sign in with, and whether a password would do: asked by pages before anybody is signed in.
import { Elysia, t } from "elysia";
import { networkOf } from "#domain/users/throttle.ts";
import type { ApiContext } from "../context.ts";
import { ownParser, parsePublicJson } from "../http/body.ts";
import { fails } from "../http/responses.ts";

const tags = ["Users"];

const AuthMethods = t.Object({
  terms_of_service_url: t.String(),
  password: t.Object({ enabled: t.Boolean() }),
  github: t.Object({ enabled: t.Boolean(), default_provider_configured: t.Boolean() }),
  oidc: t.Object({ enabled: t.Boolean(), signInText: t.String(), iconUrl: t.String() }),
});

export const signInMethods = (ctx: ApiContext) =>
  new Elysia()
    .get(
      "/authmethods",
      () => ({
        terms_of_service_url: "",
        password: { enabled: true },
        github: { enabled: false, default_provider_configured: false },
        oidc: { enabled: false, signInText: "", iconUrl: "" },
      }),
      {
        response: { 200: AuthMethods },
        detail: { tags, summary: "Ways to sign in", security: [] },
      },
    )
    .post(
      "/validate-password",
      async ({ body, request }) => {
        const asker = { keys: [`address ${networkOf(ctx.addresses.of(request))}`], isKnown: false };
        const details = await ctx.accounts.passwords.problem(body.password, {}, asker);
        return { valid: details === "", details };
      },
      {
        parse: ownParser("/api/v2/users/validate-password", parsePublicJson),
        body: t.Object({ password: t.String({ maxLength: 1000 }) }),
        response: {
          200: t.Object({ valid: t.Boolean(), details: t.String({ description: "What is wrong; empty when valid." }) }),
          ...fails(400, 415, 503),
        },
        detail: { tags, summary: "Check a new password", description: "Nothing is stored.", security: [] },
      },
    );
