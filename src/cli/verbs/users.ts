// The subcommands of `slipway users` and `slipway tokens`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";
import { PASSWORDS } from "./offline.ts";

const user = { completes: "user" } as const;
const token = { completes: "token" } as const;

export const USERS = group({
  area: "people",
  name: "users",
  help: "Invite, list, suspend and delete users, assign roles, reset passwords and second factors.",
  details: () => `USER is a username, an email address or an ID.\nPasswords: ${PASSWORDS}\n${CONNECTION()}`,
  subcommands: [
    {
      name: "list",
      usage: "[FILTER]",
      help: "Lists the users you can see. Filter with terms such as status:suspended or role:auditor.",
      load: () => import("../client/users/list.ts"),
    },
    { ...user, name: "show", usage: "USER", help: "Shows a user.", load: () => import("../client/users/show.ts") },
    {
      name: "invite",
      usage:
        "[EMAIL]... [--file FILE] [--organization NAME [--group NAME]...] [--roles ROLE,...] [--organization-roles ROLE,...]",
      help: "Invites people: each gets a link to set a password or passkey, by email or printed. FILE is a list or CSV.",
      load: () => import("../client/users/invite.ts"),
    },
    {
      name: "invitations",
      usage: "",
      help: "Lists pending invitations.",
      load: async () => ({ run: (await import("../client/users/invitations.ts")).list }),
    },
    {
      name: "resend",
      usage: "EMAIL [--link]",
      help: "Sends an invitation again with a new link, or prints the link.",
      load: async () => ({ run: (await import("../client/users/invitations.ts")).resend }),
    },
    {
      name: "revoke",
      usage: "EMAIL",
      help: "Revokes an invitation.",
      load: async () => ({ run: (await import("../client/users/invitations.ts")).revoke }),
    },
    {
      name: "create",
      usage:
        "NAME [--email EMAIL] [--name TEXT] [--roles ROLE,...] [--organization NAME]... [--password-file FILE | --login-type oidc|none | --service-account]",
      help: "Creates a user with a password you choose, or a service account. Prefer invite for people.",
      load: () => import("../client/users/create.ts"),
    },
    {
      ...user,
      name: "suspend",
      usage: "USER",
      help: "Suspends a user and revokes their sessions and tokens.",
      load: async () => ({ run: (await import("../client/users/status.ts")).suspend }),
    },
    {
      ...user,
      name: "activate",
      usage: "USER",
      help: "Reactivates a suspended user.",
      load: async () => ({ run: (await import("../client/users/status.ts")).activate }),
    },
    {
      ...user,
      name: "roles",
      usage: "USER [--set ROLE,... | --add ROLE,... | --remove ROLE,...]",
      help: "Shows or changes site-wide roles: owner, auditor, template-admin, user-admin; --set none removes all.",
      load: () => import("../client/users/roles.ts"),
    },
    {
      ...user,
      name: "delete",
      usage: "USER [--yes]",
      help: "Deletes a user without workspaces after confirmation.",
      load: () => import("../client/users/delete.ts"),
    },
    {
      ...user,
      name: "reset-password",
      usage: "USER [--password-file FILE]",
      help: "Sets a password and revokes the user's sessions and tokens.",
      load: () => import("../client/users/reset-password.ts"),
    },
    {
      ...user,
      name: "reset-factors",
      usage: "USER",
      help: "Removes a user's second factors so that they can sign in with only their password.",
      load: () => import("../client/users/reset-factors.ts"),
    },
  ],
});

export const TOKENS = group({
  area: "people",
  name: "tokens",
  help: "Manage API tokens.",
  details: () => `TOKEN is a name or an ID. Without --user, the tokens are yours.\n${CONNECTION()}`,
  subcommands: [
    {
      name: "list",
      usage: "[--user USER | --all] [--expired]",
      help: "Lists your tokens, a user's, or everyone's; --expired includes expired ones.",
      load: () => import("../client/tokens/list.ts"),
    },
    {
      ...token,
      name: "show",
      usage: "TOKEN [--user USER]",
      help: "Shows a token's scopes, networks and expiration.",
      load: () => import("../client/tokens/show.ts"),
    },
    {
      name: "create",
      usage: "[NAME] [--lifetime 7d] [--scope SCOPE]... [--address NETWORK]... [--user USER]",
      help: "Creates a token and prints it once; --scope and --address limit its use, --user creates one for a service account.",
      load: () => import("../client/tokens/create.ts"),
    },
    {
      ...token,
      name: "change",
      usage: "TOKEN [--scope SCOPE]... [--address NETWORK]... [--user USER]",
      help: "Replaces a token's scopes or networks.",
      load: () => import("../client/tokens/change.ts"),
    },
    {
      ...token,
      name: "remove",
      usage: "TOKEN [--user USER]",
      help: "Revokes a token.",
      load: () => import("../client/tokens/remove.ts"),
    },
    {
      name: "scopes",
      usage: "",
      help: "Lists the names that --scope accepts.",
      load: () => import("../client/tokens/scopes.ts"),
    },
  ],
});
