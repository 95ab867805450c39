// Sign-in methods and password validation, used by pages before sign-in.
import { type Static, t } from "elysia";
import type { OidcSetting } from "#base/config/oidc-settings.ts";
import { findUser } from "#db/users/users.ts";
import { providerPath } from "#domain/oidc/providers.ts";
import { toNetwork } from "#domain/users/throttle.ts";
import { named } from "#schema/shape-names.ts";
import { toRelyingParty } from "#src/authentication/webauthn.ts";
import type { ApiContext } from "../context.ts";
import { findSignedInUser } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Users"];

const AuthMethods = named(
  "SignInMethods",
  t.Object({
    terms_of_service_url: t.String(),
    password: t.Object({ enabled: t.Boolean() }),
    passkey: t.Object({ enabled: t.Boolean({ description: "Whether browsers accept passkeys at the access URL." }) }),
    github: t.Object({ enabled: t.Boolean(), default_provider_configured: t.Boolean() }),
    oidc: t.Object({
      enabled: t.Boolean(),
      signInText: t.String(),
      iconUrl: t.String(),
      providers: t.Array(
        t.Object({
          id: t.String(),
          name: t.String(),
          icon: t.String({ description: "The URL of the provider's icon; may be empty." }),
          url: t.String({
            description: "The sign-in URL. Accepts the query parameter `redirect`, a path to redirect to afterwards.",
          }),
        }),
        {
          description:
            "All sign-in providers. The other fields describe the first one, for clients that support only one.",
        },
      ),
    }),
  }),
);

const presentProviders = (settings: readonly OidcSetting[]): Static<typeof AuthMethods>["oidc"] => {
  const providers = settings.map(({ id, display_name, icon = "" }) => ({
    id,
    icon,
    name: display_name ?? id,
    url: `${providerPath(id)}/start`,
  }));
  const [first] = providers;
  return {
    enabled: first !== undefined,
    signInText: first ? `Sign in with ${first.name}` : "",
    iconUrl: first?.icon ?? "",
    providers,
  };
};

export const signInMethods = (ctx: ApiContext) =>
  routes()
    .get(
      "/authmethods",
      () => ({
        terms_of_service_url: "",
        password: { enabled: true },
        passkey: { enabled: toRelyingParty(ctx.accessUrl) !== undefined },
        github: { enabled: false, default_provider_configured: false },
        oidc: presentProviders(ctx.config.oidc_providers),
      }),
      {
        response: { 200: AuthMethods },
        detail: operation({
          tags,
          operationId: "listSignInMethods",
          access: "anyone",
          summary: "List sign-in methods",
          security: [],
        }),
      },
    )
    .post(
      "/validate-password",
      async ({ body, request }) => {
        const client = { keys: [`address ${toNetwork(ctx.addresses.of(request))}`], isKnown: false };
        const caller = findSignedInUser(request);
        const owner = caller && (await ctx.store.get(findUser({ id: caller.user_id })));
        const details = await ctx.accounts.passwords.problem(body.password, owner ?? {}, client);
        return { valid: details === "", details };
      },
      {
        body: t.Object({ password: t.String({ maxLength: 1000 }) }),
        response: {
          200: t.Object({
            valid: t.Boolean(),
            details: t.String({ description: "Why the password is invalid; empty if it is valid." }),
          }),
          ...fails(400, 415, 503),
        },
        detail: operation({
          reads: "public",
          tags,
          operationId: "validatePassword",
          access: "anyone",
          summary: "Validate a password",
          description: "Checks a new password against the rules. Nothing is stored.",
          security: [],
          example: { password: "a long enough secret" },
        }),
      },
    );
