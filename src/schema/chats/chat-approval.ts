// Wire shapes of calls that wait for approval, with their effects computed from the workspace at the time of the read.
import { type Static, Type as t } from "@sinclair/typebox";
import { named, namedObject } from "../shape-names.ts";
import { toolCallId } from "./chat-part.ts";
import { PermissionRule } from "./chat-permissions.ts";

const EditedFile = namedObject("ApprovalFile", {
  path: t.String({
    description: "The path of the file as the call names it: absolute, or relative to the agent's folder.",
  }),
  diff: t.String({ description: "A unified diff against the current file, truncated to 256 KiB." }),
  is_new: t.Boolean({ description: "Whether the call creates the file." }),
});

export const ChatApproval = namedObject("ChatApproval", {
  tool_call_id: toolCallId,
  tool_name: t.String(),
  args: t.String({ description: "The arguments of the call, as JSON." }),
  files: t.Optional(t.Array(EditedFile, { description: "The changes that the call makes to files." })),
  command: t.Optional(
    t.Object(
      {
        text: t.String({ description: "The whole command line." }),
        folder: t.String({
          description:
            "The folder that the command runs in, or several with `or` between them if a coding agent's shell may have kept the folder of an earlier command; empty if unknown.",
        }),
        parts: t.Array(t.String(), { description: "The simple commands in the command line, as written." }),
        in_background: t.Boolean({
          description: "Whether the call returns without waiting for the command to finish.",
        }),
      },
      { description: "The command that `execute` runs." },
    ),
  ),
  problem: t.Optional(
    t.String({ description: "Why the effect of the call can't be shown, such as an edit that does not apply." }),
  ),
  always: t.Array(PermissionRule, {
    description:
      "The rules that are stored if the call is answered with the scope `always`; empty if none can be stored.",
  }),
});
export type ChatApproval = Static<typeof ChatApproval>;

export const ChatApprovals = named(
  "ChatApprovals",
  t.Object({
    calls: t.Array(ChatApproval, {
      description: "The calls in the order of the model; empty unless the chat waits for an approval.",
    }),
  }),
);
export type ChatApprovals = Static<typeof ChatApprovals>;
