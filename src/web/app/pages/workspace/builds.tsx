// The builds of a workspace, newest first, each with its log.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Build } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { call } from "../../data/api.ts";
import { LogFeed } from "../../data/logs.ts";
import { useChange, useResource } from "../../data/resource.ts";
import { getWorkspaceState } from "../../data/states.ts";
import { Failed } from "../../parts/empty.tsx";
import { formatDuration } from "../../parts/format-time.ts";
import { setTo } from "../../parts/handlers.ts";
import { LogView } from "../../parts/log-view.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";

const MAX_SHOWN = 50;
const VERBS: Record<Build["transition"], string> = { start: "Start", stop: "Stop", delete: "Delete" };

const formatBuildDuration = ({ job }: Build): string =>
  job.started_at && job.completed_at ? formatDuration(Date.parse(job.completed_at) - Date.parse(job.started_at)) : "";

export const Builds = ({ workspace }: { workspace: Workspace }) => {
  const { id, latest_build } = workspace;
  const { state, reload } = useResource(`builds ${id}`, () =>
    call("GET /workspaces/:workspace/builds", { path: { workspace: id }, query: { limit: MAX_SHOWN } }),
  );
  const chosenId = useSignal(latest_build.id);
  useChange(`${latest_build.id} ${latest_build.status}`, reload);
  const { data, error } = state.value;
  if (error && !data) return <Failed title="Can't load the builds" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={5} />;
  const build = data.find((one) => one.id === chosenId.value) ?? data[0];
  return (
    <div class="split even">
      <div class="scroll" role="region" aria-label="Builds" tabIndex={0}>
        <table class="table">
          <thead>
            <tr>
              <th class="r">Build</th>
              <th>Action</th>
              <th>Version</th>
              <th>Started by</th>
              <th class="r">Duration</th>
              <th class="r">Started</th>
            </tr>
          </thead>
          <tbody>
            {data.map((one) => (
              <tr key={one.id}>
                <td class="r num">{one.build_number}</td>
                <td>
                  <State kind={getWorkspaceState({ status: one.status, dormant_at: undefined })}>
                    <button
                      type="button"
                      class="link"
                      aria-pressed={one.id === build?.id}
                      onClick={setTo(chosenId, one.id)}
                    >
                      {VERBS[one.transition]} {one.status === "failed" || one.status === "canceled" ? one.status : ""}
                    </button>
                  </State>
                </td>
                <td class="mut">{one.template_version_name}</td>
                <td class="mut">
                  {one.reason === "initiator" || one.reason === "dashboard" ? one.initiator_name : one.reason}
                </td>
                <td class="r num mut">{formatBuildDuration(one)}</td>
                <td class="r dim">
                  <Time at={one.created_at} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {build && <BuildLog key={build.id} build={build} />}
    </div>
  );
};

const BuildLog = ({ build }: { build: Build }) => {
  const feed = useMemo(() => new LogFeed(), [build.id]);
  useEffect(() => {
    feed.follow({ source: "build", path: `/workspacebuilds/${build.id}/logs` });
    return () => feed.end();
  }, [feed]);
  return (
    <LogView
      title={`Log of build ${build.build_number}`}
      feed={feed}
      sources={["build"]}
      file={`${build.workspace_name}-build-${build.build_number}.log`}
      empty={build.job.error || "No output."}
    />
  );
};
