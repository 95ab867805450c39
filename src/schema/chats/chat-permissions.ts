// What a chat's model may do without asking: rules of a chat, of a user's new chats, and the answers to calls that were asked for.
import { type Static, Type as t } from "@sinclair/typebox";
import { named } from "../named.ts";
import { oneOf } from "../one-of.ts";
import { strictObject } from "../strict.ts";

const action = (description: string) => oneOf(["allow", "ask", "deny"], description);
const commandWords = () =>
  t.Optional(
    t.String({
      maxLength: 4_096,
      description: "Only for `execute`: the words that the command must begin with, such as `git status`.",
    }),
  );

export const PermissionRule = named(
  "PermissionRule",
  strictObject({
    tool: t.String({ maxLength: 128, description: "A tool's name; a `*` at the end stands for any rest." }),
    command: commandWords(),
    action: action("allow runs the call, ask waits for a person, deny answers it with an error."),
  }),
);
export type PermissionRule = Static<typeof PermissionRule>;

export const ChatPermissions = named(
  "ChatPermissions",
  strictObject({
    default: action("What becomes of calls that no rule names."),
    rules: t.Array(PermissionRule, { maxItems: 200, description: "The first one that fits decides." }),
  }),
);
export type ChatPermissions = Static<typeof ChatPermissions>;
export type PermissionAction = ChatPermissions["default"];

export const PermissionAnswers = named(
  "PermissionAnswers",
  strictObject({
    answers: t.Array(
      named(
        "PermissionAnswer",
        strictObject({
          tool_call_id: t.String({ maxLength: 1_024 }),
          decision: oneOf(["allow", "deny"]),
          scope: t.Optional(
            oneOf(["once", "always"], "always also puts a rule in front of the chat's others; once by default."),
          ),
          command: commandWords(),
        }),
      ),
      { maxItems: 1_000 },
    ),
  }),
);
export type PermissionAnswers = Static<typeof PermissionAnswers>;
