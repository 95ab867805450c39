// Wire shapes of groups: members of an organization who are given access together.
import { type Static, Type as t } from "@sinclair/typebox";
import { named } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { iconText, lineText, trimmedText } from "../text.ts";
import { User } from "./user.ts";

const { organization_ids: _organizations, roles: _roles, has_ai_seat: _seat, ...ofMember } = User.properties;

/** A user as shown in a group's member list. */
export const GroupMember = named("GroupMember", t.Object(ofMember));
export type GroupMember = Static<typeof GroupMember>;

export const GroupMembers = named("GroupMembers", t.Object({ users: t.Array(GroupMember), count: t.Integer() }));

export const Group = named(
  "Group",
  t.Object({
    id: t.String({ format: "uuid", description: "Of the group of all members: the organization's id." }),
    name: t.String(),
    display_name: t.String({ description: "May be empty: the name." }),
    organization_id: t.String({ format: "uuid" }),
    organization_name: t.String(),
    organization_display_name: t.String(),
    members: t.Array(GroupMember, {
      description: "By username, at most 1,000. Callers who cannot read all members see only themselves.",
    }),
    total_member_count: t.Integer(),
    avatar_url: t.String({ description: "A URL, or empty." }),
    quota_allowance: t.Integer({ description: "The daily cost that each member's workspaces can add." }),
    source: t.String({ description: "`user`: made by people." }),
  }),
);
export type Group = Static<typeof Group>;

const Name = trimmedText({ minLength: 1, maxLength: 255, description: "Unique in the organization." });
const DisplayName = lineText({ maxLength: 255 });
const Allowance = t.Integer({ minimum: 0, maximum: 1_000_000_000 });

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
  t.Optional(t.Array(t.String({ maxLength: 64 }), { maxItems: 500, description: `${what}: user ids or usernames.` }));

export const PatchGroup = named(
  "UpdateGroupRequest",
  strictObject({
    name: t.Optional(t.Union([Name, t.Literal("")], { description: "Empty: unchanged." })),
    display_name: t.Optional(DisplayName),
    avatar_url: t.Optional(iconText({ maxLength: 500 })),
    quota_allowance: t.Optional(Allowance),
    add_users: Users("Members of the organization who come into the group"),
    remove_users: Users("Who leaves it"),
  }),
);
export type PatchGroup = Static<typeof PatchGroup>;

/** Daily cost of a user's workspaces in an organization, and the allowance of their groups. */
export const WorkspaceQuota = named(
  "WorkspaceQuota",
  t.Object({
    credits_consumed: t.Integer({ description: "The daily cost of their workspaces in the organization." }),
    budget: t.Integer({ description: "The sum of their groups' allowances; -1: no limit." }),
  }),
);
export type WorkspaceQuota = Static<typeof WorkspaceQuota>;
