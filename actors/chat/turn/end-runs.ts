// Ends commands and sub-chats of calls that no turn of this server follows, so that they can be interrupted after a crash (rules TO-5,
// SB-7).

import { execute } from "#src/tools/processes/execute.ts";
import { endProcess } from "#src/tools/processes/processes.ts";
import { waitAgent } from "#src/tools/subagents/wait-agent.ts";
import type { Interrupted } from "../effects.ts";
import { agentOfCall } from "./agent-choice.ts";
import { type AgentDeps, type ReachDeps, WorkspaceAgent } from "./tool-agent.ts";
import { toRunId } from "./tool-step.ts";

type Deps = ReachDeps & Pick<AgentDeps, "subagents">;

/** Resolves when all have ended, or have been unreachable for too long. Never rejects. */
export const endRuns = (parts: Deps, { id: chat_id, pending_calls, about }: Interrupted): Promise<unknown> =>
  Promise.all(
    pending_calls.map(async (call) => {
      const of = { chat_id, run_id: toRunId(chat_id, call) };
      if (call.tool_name === execute.name) {
        const agent = new WorkspaceAgent(parts, { ...about, ...of }, true, { name: agentOfCall(call).agent });
        await endProcess({ agent, clock: parts.clock }, of.run_id);
      }
      if (call.tool_name !== waitAgent.name) return;
      const { chat_id: child } = (call.args ?? {}) as { chat_id?: unknown };
      const agents = parts.subagents({ ...of, call });
      if (typeof child === "string") await agents.interrupt(child).catch(() => {});
    }),
  );
