// Wire shapes of users (facts/platform 9.2, the specification's user).
import { type Static, Type as t } from "@sinclair/typebox";
import { EMAIL_PATTERN, EMAIL_PROBLEM, MAX_EMAIL_LENGTH } from "#base/email-address.ts";
import { avatarUrl } from "../fields.ts";
import { namedObject } from "../shape-names.ts";
import { lineText } from "../text.ts";

export const USER_STATUSES = ["active", "dormant", "suspended"] as const;
const LOGIN_TYPES = ["password", "oidc", "none"] as const;
export const SITE_ROLES = ["owner", "auditor", "template-admin", "user-admin"] as const;

/** The rule for usernames (facts/platform 3.1). */
const USERNAME = "^[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*$";

export const Username = t.String({
  minLength: 1,
  maxLength: 32,
  pattern: USERNAME,
  description: "The username: 1 to 32 letters, digits and single hyphens. Unique, ignoring case.",
});
export const Email = t.String({
  minLength: 3,
  maxLength: MAX_EMAIL_LENGTH,
  pattern: EMAIL_PATTERN,
  error: EMAIL_PROBLEM,
  description: "The user's email address. Unique, ignoring case.",
});
const REAL_NAME = "The user's display name; may be empty.";
export const RealName = lineText({ maxLength: 128, description: REAL_NAME });

export const RoleName = namedObject("RoleName", {
  name: t.String({ description: "The name of the role, as in requests." }),
  display_name: t.String(),
  organization_id: t.Optional(
    t.String({ format: "uuid", description: "The ID of the organization; absent for site roles." }),
  ),
});
export type RoleName = Static<typeof RoleName>;

/** A user as other users see them (specification "Minimal user"). */
export const MinimalUser = namedObject("MinimalUser", {
  id: t.String({ format: "uuid" }),
  username: t.String(),
  name: t.String({ description: REAL_NAME }),
  avatar_url: avatarUrl,
});
export type MinimalUser = Static<typeof MinimalUser>;

export const User = namedObject("User", {
  id: t.String({ format: "uuid" }),
  username: t.String(),
  name: t.String({ description: REAL_NAME }),
  email: t.String(),
  avatar_url: avatarUrl,
  theme_preference: t.String({
    description: "The theme that the user chose for pages, such as `dark`; empty for the browser's.",
  }),
  login_type: t.String({
    description:
      "How the user signs in: `password`, `oidc` for a sign-in provider, or `none` for accounts that can't sign in.",
  }),
  status: t.String({
    description: "The status of the user: `active`, `dormant` (has never signed in) or `suspended`.",
  }),
  created_at: t.String({ format: "date-time" }),
  updated_at: t.String({ format: "date-time" }),
  last_seen_at: t.Optional(
    t.String({ format: "date-time", description: "When the user was last seen; absent until the first sign-in." }),
  ),
  has_ai_seat: t.Boolean({ description: "Whether the user has ever started a chat." }),
  is_service_account: t.Boolean({ description: "Whether the account can't sign in and uses only API tokens." }),
  organization_ids: t.Array(t.String({ format: "uuid" })),
  roles: t.Array(RoleName, { description: "The site roles; `member` is implied." }),
});
export type User = Static<typeof User>;

export const FirstUserRequest = namedObject("FirstUserRequest", {
  setup_token: t.Optional(
    t.String({
      maxLength: 100,
      description:
        "The token from the setup link that the server prints at startup. Alternatively, send it in the header Service-Setup-Token or in the query.",
    }),
  ),
  email: Email,
  username: Username,
  name: t.Optional(RealName),
  password: t.String({ maxLength: 1000, description: "The password; `POST /users/validate-password` has the rules." }),
  trial: t.Optional(t.Boolean({ description: "Accepted for compatibility and ignored." })),
});

export const LoginRequest = namedObject("LoginRequest", {
  email: t.String({ maxLength: 254, description: "The email address of the account; usernames are not accepted." }),
  password: t.String({ maxLength: 1000 }),
});

/** The response to a sign-in. */
export const SessionToken = namedObject("SessionToken", {
  session_token: t.String({ description: "The session token. Send it in the header Service-Session-Token." }),
});
export type SessionToken = Static<typeof SessionToken>;

export const SignedOut = namedObject("SignedOut", {
  message: t.String(),
  sign_out_url: t.Optional(
    t.String({
      description:
        "The URL at which the browser also ends the session at the sign-in provider. It redirects back afterwards.",
    }),
  ),
});

export const CreateUserRequest = namedObject("CreateUserRequest", {
  email: t.Optional(
    t.Union([t.Literal(""), Email], {
      description: "The email address. Needed for `login_type` `password`; empty for service accounts.",
    }),
  ),
  username: Username,
  name: t.Optional(RealName),
  password: t.Optional(
    t.String({
      maxLength: 1000,
      description: "The password. Needed for `login_type` `password`, and not allowed otherwise.",
    }),
  ),
  service_account: t.Optional(
    t.Boolean({
      description:
        "Whether to create a service account, which has API tokens but can't sign in with an email address or a password.",
    }),
  ),
  login_type: t.Optional(
    t.Union([t.Literal(""), ...LOGIN_TYPES.map((type) => t.Literal(type))], {
      description: "How the user signs in; default `password`.",
    }),
  ),
  user_status: t.Optional(
    t.Union([t.Literal("active"), t.Literal("dormant")], {
      description: "The initial status; default `dormant`, until the first sign-in.",
    }),
  ),
  organization_ids: t.Optional(
    t.Array(t.String({ format: "uuid" }), {
      maxItems: 100,
      description: "The IDs of the user's organizations; default: the default organization.",
    }),
  ),
  roles: t.Optional(t.Array(t.String({ maxLength: 64 }), { maxItems: 16, description: "The site roles." })),
});

export type CreateUser = Static<typeof CreateUserRequest>;

export const UpdateProfileRequest = namedObject("UpdateProfileRequest", {
  username: Username,
  name: t.Optional(RealName),
});

export const UpdatePasswordRequest = namedObject("UpdatePasswordRequest", {
  old_password: t.Optional(
    t.String({ maxLength: 1000, description: "The current password. Needed to change your own password." }),
  ),
  password: t.String({ maxLength: 1000, description: "The new password." }),
});

export const UpdateRolesRequest = namedObject("UpdateRolesRequest", {
  roles: t.Array(t.String({ maxLength: 64 }), {
    maxItems: 16,
    description: "All roles that the user has afterwards. Implied ones, such as `member`, can be omitted.",
  }),
});
