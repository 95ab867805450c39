// Wire shapes of members of organizations (facts/platform 9.3).
import { type Static, Type as t } from "@sinclair/typebox";
import { avatarUrl } from "../fields.ts";
import { namedObject } from "../shape-names.ts";
import { RoleName, User } from "./user.ts";

export const Member = namedObject("OrganizationMember", {
  user_id: t.String({ format: "uuid" }),
  organization_id: t.String({ format: "uuid" }),
  username: t.String(),
  name: t.String(),
  email: t.String(),
  avatar_url: avatarUrl,
  status: User.properties.status,
  login_type: User.properties.login_type,
  last_seen_at: t.Optional(
    t.String({ format: "date-time", description: "When the user was last seen; absent until the first sign-in." }),
  ),
  roles: t.Array(RoleName, { description: "The roles in this organization; `organization-member` is implied." }),
  global_roles: t.Array(RoleName, { description: "The site roles." }),
  created_at: t.String({ format: "date-time", description: "When the user became a member." }),
  updated_at: t.String({ format: "date-time" }),
});
export type Member = Static<typeof Member>;
