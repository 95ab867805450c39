// Wire shapes of tool permissions: rules of a chat, rules of a user's new chats, and answers to pending calls.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { named } from "../shape-names.ts";
import { strictObject } from "../strict.ts";

/** What a chat may do without asking when no rule matches, as users choose it (src/tools/permission-mode.ts defines each mode). */
export const PERMISSION_MODES = ["ask", "accept_edits", "allow", "plan"] as const;
export const PermissionMode = named(
  "PermissionMode",
  oneOf(
    PERMISSION_MODES,
    "ask: asks before it changes or runs anything. accept_edits: edits files of the workspace without asking. allow: asks for nothing. plan: only looks around and proposes a plan. Rules of `permissions` go first.",
  ),
);
export type PermissionMode = Static<typeof PermissionMode>;

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
    exact: t.Optional(
      t.Boolean({
        description: "If true, the command must consist of exactly these words; otherwise, it must begin with them.",
      }),
    ),
    action: action("allow runs the call, ask waits for a person, deny answers it with an error."),
  }),
);
export type PermissionRule = Static<typeof PermissionRule>;

export const ChatPermissions = named(
  "ChatPermissions",
  strictObject({
    default: oneOf(
      ["allow", "accept_edits", "ask_changes", "ask", "deny"],
      "What happens to calls that no rule names. accept_edits and ask_changes are the permission modes accept_edits and ask: they allow what only looks, accept_edits also edits below the agent's folder; ask and deny are about every call.",
    ),
    rules: t.Array(PermissionRule, { maxItems: 200, description: "The first matching rule applies." }),
  }),
);
export type ChatPermissions = Static<typeof ChatPermissions>;
export type PermissionAction = PermissionRule["action"];

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
