// The workspace's current state in figures: status and reason, deadline, and resource usage from its agents.
import { formatSize } from "#base/format-size.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { listAgents } from "../../data/one-workspace.ts";
import { explainState, formatStatus, getWorkspaceState } from "../../data/states.ts";
import { formatDuration, formatShortTime } from "../../parts/format-time.ts";
import { State } from "../../parts/state.tsx";
import { now } from "../../parts/time.tsx";

/** Shows the number in large type, and its unit in small type. A percentage in parentheses is omitted to save space. */
const Figure = ({ text }: { text: string }) => {
  const [, figure, unit] = text.match(/^([\d.,]+)\s*(.*?)(?: \(\d+ ?%\))?$/s) ?? [];
  if (figure === undefined) return <>{text || "–"}</>;
  return (
    <>
      {figure} {unit && <small>{unit}</small>}
    </>
  );
};

/** Used and total amount. */
const Amount = ({
  label,
  used,
  total,
  isLow = false,
}: {
  label: string;
  used: number;
  total: number;
  isLow?: boolean;
}) => (
  <div>
    <dt>{label}</dt>
    <dd class={isLow ? "t-bad" : undefined}>
      {formatSize(used)} <small>of {formatSize(total)}</small>
    </dd>
  </div>
);

export const WorkspaceStats = ({ row, workspace }: { row: WorkspaceSummary; workspace: Workspace }) => {
  const kind = getWorkspaceState(row);
  const explanation = explainState(row);
  const metadata = listAgents(workspace).flatMap(({ metadata }) => metadata);
  const [agent] = listAgents(workspace);
  const latency = Object.values(agent?.latency ?? {}).find(({ preferred }) => preferred);
  const { home, memory } = (agent?.status === "connected" && agent.resources) || {};
  // A metric of the template takes precedence: it is the workspace's own, while the agent of a workspace that shares its machine reports
  // the machine's.
  const isMeasured = (name: "disk" | "memory"): boolean =>
    metadata.some(({ description: { display_name, key } }) => RegExp(`^${name}\\b`, "i").test(display_name || key));
  const leftMs = row.deadline && row.status === "running" ? Date.parse(row.deadline) - now.value : undefined;
  return (
    <dl class="stats">
      <div>
        <dt>State</dt>
        <dd class="line">
          <State kind={kind} tint>
            {formatStatus(row, kind)}
          </State>
        </dd>
        {explanation && <dd class={kind === "failed" ? "why t-bad" : "why"}>{explanation}</dd>}
      </div>
      {leftMs !== undefined && (
        <div>
          <dt>Stops</dt>
          <dd>
            {formatShortTime(now.value + leftMs, now.value)} <small>in {formatDuration(Math.max(0, leftMs))}</small>
          </dd>
        </div>
      )}
      {row.status !== "running" && row.next_start_at && (
        <div>
          <dt>Starts</dt>
          <dd>{formatShortTime(Date.parse(row.next_start_at), now.value)}</dd>
        </div>
      )}
      {metadata.map(({ description, result }) => (
        <div key={description.key}>
          <dt>{description.display_name || description.key}</dt>
          <dd class={result.error ? "t-bad" : undefined} title={result.error || undefined}>
            <Figure text={result.error ? "" : result.value.trim()} />
          </dd>
        </div>
      ))}
      {home && !isMeasured("disk") && (
        <Amount label="Disk" used={home.used_bytes} total={home.total_bytes} isLow={home.level !== "ok"} />
      )}
      {memory && !isMeasured("memory") && <Amount label="Memory" used={memory.used_bytes} total={memory.total_bytes} />}
      {latency && (
        <div>
          <dt>Latency</dt>
          <dd>
            {Math.round(latency.latency_ms)} <small>ms</small>
          </dd>
        </div>
      )}
      <div>
        <dt>Template</dt>
        <dd class="clip" title={row.template_version_name}>
          {row.template_display_name || row.template_name}
        </dd>
      </div>
    </dl>
  );
};
