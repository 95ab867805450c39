// Wire shapes of sharing a workspace with people (facts/platform 1.2 and 3.4).
import { type Static, Type as t } from "@sinclair/typebox";
import { avatarUrl } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { MinimalUser } from "../users/user.ts";

/** `use`: see it and work in it. `admin`: also start, stop and change it. */
export const WORKSPACE_ROLES = ["admin", "use"] as const;
export type WorkspaceRole = (typeof WORKSPACE_ROLES)[number];

/** ID of a user or group to role. */
export type Acl = Readonly<Record<string, WorkspaceRole>>;

/** The name of every organization's group of all members, which has the organization's ID. */
export const EVERYONE = "Everyone";

const role = named(
  "WorkspaceRole",
  oneOf(
    WORKSPACE_ROLES,
    "The role on the workspace. `use`: see it and work in it. `admin`: also start, stop and change it.",
  ),
);
const toRoles = (description: string) => t.Record(t.String(), role, { description });

export const WorkspaceAcl = namedObject("WorkspaceAcl", {
  users: t.Array(t.Object({ ...MinimalUser.properties, role }), {
    description: "The users with access, sorted by username.",
  }),
  groups: t.Array(
    t.Object({
      id: t.String({ format: "uuid" }),
      name: t.String(),
      display_name: t.String(),
      avatar_url: avatarUrl,
      organization_id: t.String({ format: "uuid" }),
      organization_name: t.String(),
      organization_display_name: t.String(),
      role,
    }),
    {
      description: "The groups with access. The group of all members has the organization's ID.",
    },
  ),
  user_roles: toRoles("The roles in `users`, by user ID."),
  group_roles: toRoles("The roles in `groups`, by group ID."),
});
export type WorkspaceAcl = Static<typeof WorkspaceAcl>;

const Changes = (whose: string) =>
  t.Optional(
    t.Record(t.String(), t.String(), {
      description: `Roles by ${whose}: \`admin\`, \`use\`, or an empty string to remove the role.`,
    }),
  );

// Strict, like all bodies that change access.
export const PatchWorkspaceAcl = named(
  "PatchWorkspaceAcl",
  strictObject({
    user_roles: Changes("user ID"),
    group_roles: Changes("group ID (an organization's ID is the group of all its members)"),
  }),
);
export type PatchWorkspaceAcl = Static<typeof PatchWorkspaceAcl>;
