// Wire shapes of external account providers and users' linked accounts, without tokens.
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";
import { ExternalAuthLink, ExternalAuthProvider } from "../users/external-auth.ts";

export const ExternalAccounts = namedObject("ExternalAccounts", {
  providers: t.Array(
    t.Object({
      ...ExternalAuthProvider.properties,
      host: t.String({ description: "The sign-in URL; empty for providers that only support device codes." }),
      callback_url: t.String({ description: "The redirect URL to register with the provider." }),
      link_count: t.Integer({ description: "The number of users who have linked an account." }),
    }),
  ),
  links: t.Array(
    t.Object({ ...ExternalAuthLink.properties, user_id: t.String({ format: "uuid" }), username: t.String() }),
    {
      description: "The linked accounts, sorted by username; at most 1,000.",
    },
  ),
});
export type ExternalAccounts = Static<typeof ExternalAccounts>;
