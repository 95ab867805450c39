// Durations of a build's parts: provisioner stages, agent connections and scripts (specification "Workspace build timings"). Parts that
// have not started and ended are left out.
import { toRfc3339 } from "#base/clock.ts";
import { listAgentsEndedBy, listAgentsOfBuild } from "#db/agents/agents.ts";
import { listScriptsByAgents, listScriptTimingsByAgents } from "#db/agents/scripts.ts";
import type { Store } from "#db/engine/store.ts";
import { findJob } from "#db/workspaces/jobs.ts";
import type { WorkspaceView } from "#db/workspaces/views.ts";
import type { BuildTimings } from "#schema/workspaces/build.ts";

type Span = { started_at: number; ended_at: number };
const formatSpan = ({ started_at, ended_at }: Span) => ({
  started_at: toRfc3339(started_at),
  ended_at: toRfc3339(ended_at),
});

export const loadTimings = async (store: Store, { build, job }: WorkspaceView): Promise<BuildTimings> => {
  const row = await store.get(findJob({ id: job.id }));
  const buildAgents = await store.all(listAgentsOfBuild({ build_id: build.id }));
  // A stop or delete build ends the agents of the preceding start build, whose stop scripts belong to it.
  const isStart = build.transition === "start";
  const agents = isStart ? buildAgents : await store.all(listAgentsEndedBy({ build_id: build.id }));
  const agent_ids = JSON.stringify(agents.map(({ id }) => id));
  const scripts = new Map((await store.all(listScriptsByAgents({ agent_ids }))).map((one) => [one.id, one]));
  const newest = await store.all(listScriptTimingsByAgents({ agent_ids, stage: isStart ? "" : "stop" }));
  const runs = isStart ? newest : newest.filter(({ started_at }) => started_at >= job.created_at);
  const findAgentName = (id: string): string => agents.find((agent) => agent.id === id)?.name ?? "";
  return {
    provisioner_timings: (row?.timings ?? []).map(({ action, resource, source, stage, ...times }) => ({
      job_id: job.id,
      ...formatSpan(times),
      stage,
      source,
      action,
      resource,
    })),
    agent_script_timings: runs.map((run) => ({
      ...formatSpan(run),
      exit_code: run.exit_code,
      stage: run.stage,
      status: run.status,
      display_name: scripts.get(run.script_id)?.display_name ?? "",
      workspace_agent_id: run.agent_id,
      workspace_agent_name: findAgentName(run.agent_id),
    })),
    agent_connection_timings: buildAgents.flatMap((agent) =>
      agent.first_connected_at === null
        ? []
        : [
            {
              ...formatSpan({ started_at: agent.created_at, ended_at: agent.first_connected_at }),
              stage: "connect",
              workspace_agent_id: agent.id,
              workspace_agent_name: agent.name,
            },
          ],
    ),
  };
};
