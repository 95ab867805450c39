// Wire shapes of groups: members of an organization who are given access together.
import { type Static, Type as t } from "@sinclair/typebox";
import { avatarUrl } from "../fields.ts";
import { named } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { iconText, lineText, trimmedText } from "../text.ts";
import { User } from "./user.ts";

const { organization_ids: _organizations, roles: _roles, has_ai_seat: _seat, ...memberProperties } = User.properties;

/** A user as shown in a group's member list. */
export const GroupMember = named("GroupMember", t.Object(memberProperties));
export type GroupMember = Static<typeof GroupMember>;

export const GroupMembers = named(
  "GroupMembers",
  t.Object({
    users: t.Array(GroupMember),
    count: t.Integer({ description: "The total number of matches, not only on this page." }),
  }),
);

export const Group = named(
  "Group",
  t.Object({
    id: t.String({
      format: "uuid",
      description: "The ID of the group. The group of all members has the organization's ID.",
    }),
    name: t.String(),
    display_name: t.String({ description: "The display name of the group. If empty, its name is shown." }),
    organization_id: t.String({ format: "uuid" }),
    organization_name: t.String(),
    organization_display_name: t.String(),
    members: t.Array(GroupMember, {
      description:
        "The members, sorted by username; at most 1,000. Callers who can't read all members see only themselves.",
    }),
    total_member_count: t.Integer({
      description: "The number of all members, including members that are not returned.",
    }),
    avatar_url: avatarUrl,
    quota_allowance: t.Integer({
      description: "The daily credits that the group adds to each member's workspace budget.",
    }),
    source: t.String({ description: "The origin of the group. `user`: it was created by a user." }),
  }),
);
export type Group = Static<typeof Group>;

const Name = trimmedText({
  minLength: 1,
  maxLength: 255,
  description: "The name of the group. Unique in the organization.",
});
const DisplayName = lineText({
  maxLength: 255,
  description: "The display name of the group. If empty, its name is shown.",
});
const ALLOWANCE = "The daily credits that the group adds to each member's workspace budget.";
const Allowance = t.Integer({ minimum: 0, maximum: 1_000_000_000, description: ALLOWANCE });

export const CreateGroup = named(
  "CreateGroupRequest",
  strictObject({
    name: Name,
    display_name: t.Optional(DisplayName),
    avatar_url: t.Optional(iconText({ maxLength: 500 })),
    quota_allowance: t.Optional(Allowance),
  }),
);
export type CreateGroup = Static<typeof CreateGroup>;

const Users = (what: string) =>
  t.Optional(
    t.Array(t.String({ maxLength: 64 }), { maxItems: 500, description: `${what}, as user IDs or usernames.` }),
  );

export const PatchGroup = named(
  "UpdateGroupRequest",
  strictObject({
    name: t.Optional(
      t.Union([Name, t.Literal("")], { description: "The name of the group. If empty, it is unchanged." }),
    ),
    display_name: t.Optional(DisplayName),
    avatar_url: t.Optional(iconText({ maxLength: 500 })),
    quota_allowance: t.Optional(Allowance),
    add_users: Users("The members of the organization to add"),
    remove_users: Users("The members to remove"),
  }),
);
export type PatchGroup = Static<typeof PatchGroup>;

/** Daily cost of a user's workspaces in an organization, and the allowance of their groups. */
export const WorkspaceQuota = named(
  "WorkspaceQuota",
  t.Object({
    credits_consumed: t.Integer({
      description: "The daily cost of the user's workspaces in the organization, in credits.",
    }),
    budget: t.Integer({
      description: "The sum of the allowances of the user's groups, in credits; -1 means no limit.",
    }),
  }),
);
export type WorkspaceQuota = Static<typeof WorkspaceQuota>;
