// Wire shapes of API keys: tokens and sign-ins (facts/platform 8.2). The secret is in none of them but the answer that makes it.
import { type Static, Type as t } from "@sinclair/typebox";

/** What a key may be used for. */
export const KEY_SCOPES = ["all", "application_connect"] as const;
export type KeyScope = (typeof KEY_SCOPES)[number];

/** What a token may be called: it stands in paths. */
const TokenName = t.String({
  maxLength: 64,
  pattern: "^([a-zA-Z0-9][a-zA-Z0-9_.-]*)?$",
  description: "Up to 64 letters, digits, `_ . -`, unique among the user's tokens. Empty or absent: one is made up.",
});

export const ApiKey = t.Object({
  id: t.String({ description: "The ten characters before the hyphen of the key." }),
  user_id: t.String({ format: "uuid" }),
  username: t.String({ description: "Whose key this is." }),
  token_name: t.String({ description: "Empty for sign-ins." }),
  login_type: t.String({ description: "token, or password for a sign-in." }),
  scope: t.String(),
  scopes: t.Array(t.String()),
  lifetime_seconds: t.Integer(),
  created_at: t.String({ format: "date-time" }),
  updated_at: t.String({ format: "date-time" }),
  last_used: t.String({ format: "date-time", description: "Written at most once an hour." }),
  expires_at: t.String({ format: "date-time" }),
});
export type ApiKey = Static<typeof ApiKey>;

export const CreateTokenRequest = t.Object({
  lifetime: t.Optional(
    t.Union([t.Number(), t.String({ maxLength: 64 })], {
      description: "Nanoseconds, or a text such as `168h` or `30d`. 0 or absent: the default, seven days.",
    }),
  ),
  scope: t.Optional(t.String({ maxLength: 64, description: "all (default) or application_connect." })),
  scopes: t.Optional(t.Array(t.String({ maxLength: 64 }), { maxItems: 16 })),
  token_name: t.Optional(TokenName),
  allow_list: t.Optional(
    t.Array(t.Object({ type: t.String({ maxLength: 64 }), id: t.String({ maxLength: 64 }) }), {
      maxItems: 16,
      description: "Only {type: *, id: *} is accepted: tokens are not bound to single resources.",
    }),
  ),
});

export const NewKey = t.Object({ key: t.String({ description: "The whole key. It is shown only this once." }) });

export const TokenConfig = t.Object({
  max_token_lifetime: t.Integer({ description: "Nanoseconds that a token of this user may live at most." }),
});
