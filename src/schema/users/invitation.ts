// Wire shapes of invitations: the invited people, their roles, and how an invitation is accepted.
import { type Static, Type as t } from "@sinclair/typebox";
import { optionalTime, time, uuid } from "../fields.ts";
import { namedObject } from "../shape-names.ts";
import { Challenge, CredentialJson, PasskeyName } from "./passkey.ts";
import { Email, RealName, SessionToken, Username } from "./user.ts";

export const MAX_INVITATIONS_PER_REQUEST = 100;

const Roles = (description: string) => t.Array(t.String({ maxLength: 64 }), { maxItems: 16, description });

export const InviteRequest = namedObject("InviteRequest", {
  people: t.Array(t.Object({ email: Email, name: t.Optional(RealName) }), {
    minItems: 1,
    maxItems: MAX_INVITATIONS_PER_REQUEST,
    description: "The email addresses to invite, each with a name if known.",
  }),
  roles: t.Optional(Roles("The site roles. Only owners can assign them.")),
  organization_id: t.Optional(uuid("The ID of the organization; default: the default organization.")),
  organization_roles: t.Optional(Roles("The roles in the organization.")),
  group_ids: t.Optional(t.Array(uuid(), { maxItems: 50, description: "The IDs of groups in the organization." })),
});
export type InviteRequest = Static<typeof InviteRequest>;

export const Invitation = namedObject("Invitation", {
  id: uuid(),
  email: t.String(),
  name: t.String({ description: "The name of the invited person; may be empty." }),
  roles: t.Array(t.String(), { description: "The site roles that the new user gets." }),
  organization_id: uuid("The ID of the organization that the new user joins."),
  organization_name: t.String(),
  organization_roles: t.Array(t.String(), { description: "The roles that the new user gets in the organization." }),
  group_ids: t.Array(uuid(), { description: "The IDs of the groups that the new user joins." }),
  invited_by: t.String({ description: "The username of the user who sent the invitation." }),
  created_at: time(),
  expires_at: time(),
  expired: t.Boolean({ description: "Whether the link no longer works. Sending the invitation again renews it." }),
  sent_at: optionalTime("When the link was last sent by email; absent if it wasn't."),
  send_problem: t.String({ description: "Why the email could not be sent; empty if it was sent." }),
});
export type Invitation = Static<typeof Invitation>;

const Link = t.String({ description: "The invitation link. It works once and is returned only once." });

export const NewInvitation = namedObject("NewInvitation", {
  invitation: Invitation,
  link: t.Optional(Link),
});
export type NewInvitation = Static<typeof NewInvitation>;

export const Invited = namedObject("Invited", {
  invitations: t.Array(NewInvitation, { description: "The invitations, each with a link unless it is sent by email." }),
  skipped: t.Array(t.Object({ email: t.String(), reason: t.String({ description: "The reason, as a sentence." }) }), {
    description: "The addresses that were not invited, each with the reason.",
  }),
  by_email: t.Boolean({ description: "Whether the links are sent by email." }),
  without_template: t.Boolean({ description: "Whether the organization's members can't use any template yet." }),
});
export type Invited = Static<typeof Invited>;

export const Invitations = namedObject("Invitations", {
  invitations: t.Array(Invitation, { description: "The invitations that the caller can revoke, newest first." }),
  by_email: t.Boolean({ description: "Whether links can be sent by email." }),
});
export type Invitations = Static<typeof Invitations>;

export const ResendRequest = namedObject("ResendRequest", {
  by: t.Optional(
    t.Union([t.Literal("email"), t.Literal("link")], {
      description: "How to send the new link; default: by email if an SMTP server is configured.",
    }),
  ),
});

const Token = t.String({
  minLength: 1,
  maxLength: 100,
  description: "The token of the invitation: the fragment of the link, after the `#`.",
});

export const InvitationToken = namedObject("InvitationToken", { token: Token });

export const OpenInvitation = namedObject("OpenInvitation", {
  email: t.String(),
  name: t.String({ description: "The name of the invited person; may be empty." }),
  username: t.String({ description: "A suggested username that is available." }),
  organization_name: t.String({ description: "The display name of the organization that the new user joins." }),
  roles: t.Array(t.String(), { description: "The display names of the roles that the invitation includes." }),
  invited_by: t.String({ description: "The username of the user who sent the invitation." }),
  expires_at: time("When the link stops working."),
  passkey: t.Boolean({ description: "Whether a passkey can be used instead of a password." }),
  providers: t.Array(
    t.Object({
      id: t.String({ description: "The ID of the provider. Send it as `provider` to accept the invitation." }),
      name: t.String(),
      icon: t.String({ description: "The URL of the icon; may be empty." }),
    }),
    {
      description: "The sign-in providers that can be used instead of a password.",
    },
  ),
});
export type OpenInvitation = Static<typeof OpenInvitation>;

export const AcceptInvitation = namedObject("AcceptInvitation", {
  token: Token,
  username: Username,
  name: t.Optional(RealName),
  password: t.Optional(t.String({ maxLength: 1000, description: "The password. Use instead of a passkey." })),
  passkey: t.Optional(
    t.Object(
      {
        challenge: { ...Challenge, description: "The challenge that was returned for this invitation. Opaque." },
        name: PasskeyName,
        credential: CredentialJson,
      },
      { description: "The passkey. Use instead of a password." },
    ),
  ),
});
export type AcceptInvitation = Static<typeof AcceptInvitation>;

export const InvitationAccepted = namedObject("InvitationAccepted", {
  session_token: SessionToken.properties.session_token,
  recovery_codes: t.Optional(
    t.Array(t.String(), {
      description: "The recovery codes. Only set if a passkey was registered; returned only once.",
    }),
  ),
});

export const AcceptByPasskey = namedObject("AcceptByPasskey", { token: Token, username: Username });
export const AcceptByOidc = namedObject("AcceptByOidc", {
  token: Token,
  provider: t.String({
    maxLength: 64,
    description: "The ID of the sign-in provider, from `providers` of the invitation.",
  }),
});
