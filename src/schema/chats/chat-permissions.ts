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
    "What the model may do without approval. `ask`: read only. `accept_edits`: also edit files in the workspace. `allow`: everything. `plan`: the model only explores and proposes a plan. Rules in `permissions` take precedence.",
  ),
);
export type PermissionMode = Static<typeof PermissionMode>;

const action = (description: string) => oneOf(["allow", "ask", "deny"], description);
/** Maximum characters of a rule's command. */
export const MAX_RULE_COMMAND_CHARS = 4_096;
const commandWords = () =>
  t.Optional(
    t.String({
      maxLength: MAX_RULE_COMMAND_CHARS,
      description: "For `execute` only: the words that the command must begin with, such as `git status`.",
    }),
  );

export const PermissionRule = named(
  "PermissionRule",
  strictObject({
    tool: t.String({ maxLength: 128, description: "The name of a tool. A trailing `*` matches any suffix." }),
    command: commandWords(),
    exact: t.Optional(
      t.Boolean({
        description: "Whether the command must consist of exactly these words. Otherwise, it must begin with them.",
      }),
    ),
    action: action("`allow` runs the call, `ask` waits for approval, and `deny` returns an error to the model."),
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
    rules: t.Array(PermissionRule, { maxItems: 200, description: "The permission rules; the first match applies." }),
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
          tool_call_id: t.String({
            maxLength: 1_024,
            description: "The ID of a waiting call, as in `action_required`.",
          }),
          decision: oneOf(
            ["allow", "deny"],
            "`allow` runs the call; `deny` returns an error to the model, which continues.",
          ),
          scope: t.Optional(
            oneOf(["once", "always"], "`always` also adds a rule before the chat's other rules; default `once`."),
          ),
          command: commandWords(),
        }),
      ),
      { maxItems: 1_000, description: "Exactly one answer for each waiting call." },
    ),
  }),
);
export type PermissionAnswers = Static<typeof PermissionAnswers>;
