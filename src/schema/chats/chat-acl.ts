// Wire shapes of sharing a chat (facts/chats 4.17). The only role is read access.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { MinimalUser } from "../users/user.ts";
import { WorkspaceAcl } from "../workspaces/acl.ts";

const role = named(
  "ChatRole",
  oneOf(["read"], "The role on the chat. `read`: can see the chat, its messages and files, but can't write."),
);
const toRoles = (description: string) => t.Record(t.String(), role, { description });

export const ChatAcl = namedObject("ChatAcl", {
  users: t.Array(t.Object({ ...MinimalUser.properties, role }), {
    description: "The users with access, sorted by username.",
  }),
  groups: t.Array(t.Object({ ...WorkspaceAcl.properties.groups.items.properties, role }), {
    description: WorkspaceAcl.properties.groups.description,
  }),
  user_roles: toRoles("The roles in `users`, by user ID."),
  group_roles: toRoles("The roles in `groups`, by group ID."),
});
export type ChatAcl = Static<typeof ChatAcl>;

const changes = (whose: string) =>
  t.Optional(
    t.Record(t.String(), t.String(), {
      description: `Roles by ${whose}: \`read\`, or an empty string to remove the role.`,
    }),
  );

// Strict, like all bodies that change access.
export const PatchChatAcl = named(
  "PatchChatAcl",
  strictObject({
    user_roles: changes("user ID"),
    group_roles: changes("group ID (an organization's ID is the group of all its members)"),
  }),
);
export type PatchChatAcl = Static<typeof PatchChatAcl>;
