// Wire shapes of invitations: who is invited to what, and how an invitation is accepted.
import { type Static, Type as t } from "@sinclair/typebox";
import { optionalTime, time, uuid } from "../fields.ts";
import { namedObject } from "../shape-names.ts";
import { lineText } from "../text.ts";
import { CredentialJson } from "./passkey.ts";
import { Email, RealName, Username } from "./user.ts";

export const MAX_INVITATIONS_PER_REQUEST = 100;

const Roles = (description: string) => t.Array(t.String({ maxLength: 64 }), { maxItems: 16, description });

export const InviteRequest = namedObject("InviteRequest", {
  people: t.Array(t.Object({ email: Email, name: t.Optional(RealName) }), {
    minItems: 1,
    maxItems: MAX_INVITATIONS_PER_REQUEST,
    description: "The addresses, each with a name where it is known.",
  }),
  roles: t.Optional(Roles("Site roles. Only an owner gives them.")),
  organization_id: t.Optional(uuid("Default: the default organization.")),
  organization_roles: t.Optional(Roles("Roles in the organization.")),
  group_ids: t.Optional(t.Array(uuid(), { maxItems: 50, description: "Groups of the organization." })),
});
export type InviteRequest = Static<typeof InviteRequest>;

export const Invitation = namedObject("Invitation", {
  id: uuid(),
  email: t.String(),
  name: t.String(),
  roles: t.Array(t.String()),
  organization_id: uuid(),
  organization_name: t.String(),
  organization_roles: t.Array(t.String()),
  group_ids: t.Array(uuid()),
  invited_by: t.String({ description: "A username." }),
  created_at: time(),
  expires_at: time(),
  expired: t.Boolean(),
  sent_at: optionalTime("When the link last went out by email. Absent: it did not."),
  send_problem: t.String({ description: "Why it could not be sent; empty if it was sent." }),
});
export type Invitation = Static<typeof Invitation>;

const Link = t.String({ description: "Single use. Shown only once." });

export const NewInvitation = namedObject("NewInvitation", {
  invitation: Invitation,
  link: t.Optional(Link),
});
export type NewInvitation = Static<typeof NewInvitation>;

export const Invited = namedObject("Invited", {
  invitations: t.Array(NewInvitation, { description: "Each with a link, unless it is sent by email." }),
  skipped: t.Array(t.Object({ email: t.String(), reason: t.String() }), {
    description: "Addresses that were not invited, and why.",
  }),
  by_email: t.Boolean({ description: "Whether the links go by email." }),
  without_template: t.Boolean({ description: "Members of the organization cannot use any template yet." }),
});
export type Invited = Static<typeof Invited>;

export const Invitations = namedObject("Invitations", {
  invitations: t.Array(Invitation, { description: "Invitations that the caller can revoke, newest first." }),
  by_email: t.Boolean({ description: "Whether links can go by email." }),
});
export type Invitations = Static<typeof Invitations>;

export const ResendRequest = namedObject("ResendRequest", {
  by: t.Optional(
    t.Union([t.Literal("email"), t.Literal("link")], {
      description: "How the new link is sent. Default: by email if an SMTP server is configured.",
    }),
  ),
});

const Token = t.String({ minLength: 1, maxLength: 100, description: "The fragment of the link, after the #." });

export const InvitationToken = namedObject("InvitationToken", { token: Token });

export const OpenInvitation = namedObject("OpenInvitation", {
  email: t.String(),
  name: t.String(),
  username: t.String({ description: "An available username." }),
  organization_name: t.String(),
  roles: t.Array(t.String(), { description: "Roles that it includes, as display names." }),
  invited_by: t.String(),
  expires_at: time(),
  passkey: t.Boolean({ description: "Whether a passkey can take the place of a password." }),
  providers: t.Array(t.Object({ id: t.String(), name: t.String(), icon: t.String() }), {
    description: "The alternative sign-in URL.",
  }),
});
export type OpenInvitation = Static<typeof OpenInvitation>;

export const AcceptInvitation = namedObject("AcceptInvitation", {
  token: Token,
  username: Username,
  name: t.Optional(RealName),
  password: t.Optional(t.String({ maxLength: 1000, description: "Instead of a passkey." })),
  passkey: t.Optional(
    t.Object(
      {
        challenge: t.String({ minLength: 1, maxLength: 16384 }),
        name: lineText({ minLength: 1, maxLength: 64 }),
        credential: CredentialJson,
      },
      { description: "Instead of a password." },
    ),
  ),
});
export type AcceptInvitation = Static<typeof AcceptInvitation>;

export const InvitationAccepted = namedObject("InvitationAccepted", {
  session_token: t.String(),
  recovery_codes: t.Optional(t.Array(t.String(), { description: "With a passkey; shown only this once." })),
});

export const AcceptByPasskey = namedObject("AcceptByPasskey", { token: Token, username: Username });
export const AcceptByOidc = namedObject("AcceptByOidc", { token: Token, provider: t.String({ maxLength: 64 }) });
