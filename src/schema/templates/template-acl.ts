// Wire shapes of a template's access list.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { named } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { Group } from "../users/group.ts";
import { User } from "../users/user.ts";
import { WORKSPACE_ROLES } from "../workspaces/acl.ts";

const role = oneOf(
  WORKSPACE_ROLES,
  "The role on the template. `use`: create workspaces from it. `admin`: also manage the template, its versions and its access list.",
);

export const TemplateAcl = named(
  "TemplateAcl",
  t.Object({
    users: t.Array(named("TemplateUser", t.Object({ ...User.properties, role })), {
      description: "The users with access, sorted by username.",
    }),
    group: t.Array(named("TemplateGroup", t.Object({ ...Group.properties, role })), {
      description:
        "The groups with access. The group of all members, which can use a template by default, has the organization's ID.",
    }),
  }),
);
export type TemplateAcl = Static<typeof TemplateAcl>;

/** Users and groups the template could be shared with. */
export const TemplateAclAvailable = named(
  "TemplateAclAvailable",
  t.Object({
    users: t.Array(User, { description: "The users who can be given access." }),
    groups: t.Array(Group, { description: "The groups that can be given access." }),
  }),
);
export type TemplateAclAvailable = Static<typeof TemplateAclAvailable>;

const Changes = (whose: string) =>
  t.Optional(
    t.Record(t.String(), t.String(), {
      description: `Roles by ${whose}: \`admin\`, \`use\`, or an empty string to remove the role.`,
    }),
  );

export const PatchTemplateAcl = named(
  "UpdateTemplateAclRequest",
  strictObject({
    user_perms: Changes("user ID"),
    group_perms: Changes("group ID (the organization's ID is the group of all members)"),
  }),
);
export type PatchTemplateAcl = Static<typeof PatchTemplateAcl>;
