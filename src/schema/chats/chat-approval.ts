// Wire shapes of calls that wait for approval, with their effects computed from the workspace at the time of the read.
import { type Static, Type as t } from "@sinclair/typebox";
import { named, namedObject } from "../named.ts";
import { PermissionRule } from "./chat-permissions.ts";

const EditedFile = namedObject("ApprovalFile", {
  path: t.String(),
  diff: t.String({ description: "Unified, against the file as it is now; cut at 256 KiB." }),
  is_new: t.Boolean(),
});

export const ChatApproval = namedObject("ChatApproval", {
  tool_call_id: t.String(),
  tool_name: t.String(),
  args: t.String({ description: "JSON." }),
  files: t.Optional(t.Array(EditedFile, { description: "What an edit or a new file changes." })),
  command: t.Optional(
    t.Object(
      {
        text: t.String(),
        folder: t.String({ description: "Where it runs; empty where that is not known." }),
        parts: t.Array(t.String(), { description: "The simple commands in it, as they are written." }),
        in_background: t.Boolean(),
      },
      { description: "What `execute` runs." },
    ),
  ),
  problem: t.Optional(
    t.String({ description: "Why it cannot be shown what the call does, such as that an edit does not fit." }),
  ),
  always: t.Array(PermissionRule, {
    description: "The rules that an answer with the scope `always` keeps; empty where none can be kept.",
  }),
});
export type ChatApproval = Static<typeof ChatApproval>;

export const ChatApprovals = named("ChatApprovals", t.Object({ calls: t.Array(ChatApproval) }));
export type ChatApprovals = Static<typeof ChatApprovals>;
