// The words of `slipway users` and `slipway tokens`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";
import { PASSWORDS } from "./offline.ts";

const user = { names: "user" } as const;
const token = { names: "token" } as const;

export const USERS = group({
  area: "people",
  name: "users",
  help: "Invite, list, suspend and delete users of a running server, give roles, reset passwords and second factors.",
  details: () => `USER is a user name, an e-mail address or an id.\nPasswords: ${PASSWORDS}\n${CONNECTION()}`,
  words: [
    {
      name: "list",
      usage: "[WORDS]",
      help: "Everybody you may see; words search, such as status:suspended or role:auditor.",
      load: () => import("../client/users/list.ts"),
    },
    { ...user, name: "show", usage: "USER", help: "One of them.", load: () => import("../client/users/show.ts") },
    {
      name: "invite",
      usage:
        "[EMAIL]... [--file FILE] [--organization NAME [--group NAME]...] [--roles ROLE,...] [--organization-roles ROLE,...]",
      help: "Invites people: each gets a link to set a password or passkey, by e-mail or printed. FILE is a list or CSV.",
      load: () => import("../client/users/invite.ts"),
    },
    {
      name: "invitations",
      usage: "",
      help: "Pending invitations.",
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
      help: "Ends all sign-ins and tokens, and refuses new ones.",
      load: async () => ({ run: (await import("../client/users/status.ts")).suspend }),
    },
    {
      ...user,
      name: "activate",
      usage: "USER",
      help: "Takes a suspension back.",
      load: async () => ({ run: (await import("../client/users/status.ts")).activate }),
    },
    {
      ...user,
      name: "roles",
      usage: "USER [--set ROLE,... | --add ROLE,... | --remove ROLE,...]",
      help: "Shows the roles for the whole site, or changes them: owner, auditor, template-admin, user-admin; --set none takes all.",
      load: () => import("../client/users/roles.ts"),
    },
    {
      ...user,
      name: "delete",
      usage: "USER [--yes]",
      help: "Deletes a user who owns no workspaces, once you have said so again.",
      load: () => import("../client/users/delete.ts"),
    },
    {
      ...user,
      name: "reset-password",
      usage: "USER [--password-file FILE]",
      help: "Sets a password; all sign-ins and tokens of the user end.",
      load: () => import("../client/users/reset-password.ts"),
    },
    {
      ...user,
      name: "reset-factors",
      usage: "USER",
      help: "For who has lost the second factor: the password alone signs in again.",
      load: () => import("../client/users/reset-factors.ts"),
    },
  ],
});

export const TOKENS = group({
  area: "people",
  name: "tokens",
  help: "List, make, change and remove tokens for programs.",
  details: () => `TOKEN is a name or an id. Without --user the tokens are yours.\n${CONNECTION()}`,
  words: [
    {
      name: "list",
      usage: "[--user USER | --all] [--expired]",
      help: "Yours, somebody's, or everybody's; with --expired also those that count no longer.",
      load: () => import("../client/tokens/list.ts"),
    },
    {
      ...token,
      name: "show",
      usage: "TOKEN [--user USER]",
      help: "What it may do, from where, and until when.",
      load: () => import("../client/tokens/show.ts"),
    },
    {
      name: "create",
      usage: "[NAME] [--lifetime 7d] [--scope SCOPE]... [--address NETWORK]... [--user USER]",
      help: "Prints the token, once; --scope and --address say for what and from where it counts, --user makes one for a service account.",
      load: () => import("../client/tokens/create.ts"),
    },
    {
      ...token,
      name: "change",
      usage: "TOKEN [--scope SCOPE]... [--address NETWORK]... [--user USER]",
      help: "Replaces its scopes or its networks.",
      load: () => import("../client/tokens/change.ts"),
    },
    {
      ...token,
      name: "remove",
      usage: "TOKEN [--user USER]",
      help: "It counts no longer, from now on.",
      load: () => import("../client/tokens/remove.ts"),
    },
    {
      name: "scopes",
      usage: "",
      help: "The names that --scope takes.",
      load: () => import("../client/tokens/scopes.ts"),
    },
  ],
});
