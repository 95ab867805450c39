// Ends what a chat's commands have started where no turn of this server does: after a crash nobody follows them, and an interruption must
// reach them all the same (rule TO-5).

import { execute } from "#src/tools/execute.ts";
import { endProcess } from "#src/tools/processes.ts";
import type { PendingCall } from "./decision.ts";
import type { PromptOf } from "./prompt.ts";
import { type ReachParts, WorkspaceAgent } from "./tool-agent.ts";
import { runIdOf } from "./tool-step.ts";

/** Whose calls have no result yet, as of the interruption. */
export type Interrupted = {
  readonly id: string;
  readonly pending_calls: readonly PendingCall[];
  readonly about: PromptOf;
};

/** Resolves when all of them have ended, or cannot be reached for long. Never rejects. */
export const endRuns = (parts: ReachParts, { id: chat_id, pending_calls, about }: Interrupted): Promise<unknown> =>
  Promise.all(
    pending_calls
      .filter(({ tool_name }) => tool_name === execute.name)
      .map((call) => {
        const run_id = runIdOf(chat_id, call);
        const agent = new WorkspaceAgent(parts, { ...about, chat_id, run_id }, true);
        return endProcess({ agent, clock: parts.clock }, run_id);
      }),
  );
