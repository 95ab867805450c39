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
  "`use`: make workspaces of it; `admin`: also change it, its versions and this list.",
);

export const TemplateAcl = named(
  "TemplateAcl",
  t.Object({
    users: t.Array(named("TemplateUser", t.Object({ ...User.properties, role })), { description: "By username." }),
    group: t.Array(named("TemplateGroup", t.Object({ ...Group.properties, role })), {
      description: "The group of all members, which may use a template at first, has the organization's id.",
    }),
  }),
);
export type TemplateAcl = Static<typeof TemplateAcl>;

/** Users and groups the template could be shared with. */
export const TemplateAclAvailable = named(
  "TemplateAclAvailable",
  t.Object({ users: t.Array(User), groups: t.Array(Group) }),
);
export type TemplateAclAvailable = Static<typeof TemplateAclAvailable>;

const Changes = (whose: string) =>
  t.Optional(
    t.Record(t.String(), t.String(), { description: `${whose} id -> admin, use, or an empty text to remove.` }),
  );

export const PatchTemplateAcl = named(
  "UpdateTemplateAclRequest",
  strictObject({
    user_perms: Changes("User"),
    group_perms: Changes("Group (the organization's id is the group of all members)"),
  }),
);
export type PatchTemplateAcl = Static<typeof PatchTemplateAcl>;
