// The list of running agents in which a terminal can be opened, with the number of terminals this browser has open in each.
import { getWorkspaceState } from "../../data/states.ts";
import { workspacesByUse, workspacesLoaded } from "../../data/workspaces.ts";
import { ButtonLink } from "../../parts/button.tsx";
import { Empty } from "../../parts/empty.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { Frame } from "../../shell/frame.tsx";
import { listAllPanes, loadLayout } from "../terminal/layout.ts";

const MAX_SHOWN = 100;

/** Describes how many terminals are open in an agent. */
const formatOpenCount = (agent: string): string => {
  const layout = loadLayout(agent);
  const count = layout ? listAllPanes(layout).length : 0;
  return count === 0 ? "" : count === 1 ? "1 terminal open" : `${count} terminals open`;
};

export default function TerminalsPage() {
  const running = workspacesByUse.value.filter(({ status }) => status === "running").slice(0, MAX_SHOWN);
  const agents = running.flatMap((workspace) => workspace.agents.map((agent) => ({ workspace, agent })));
  return (
    <Frame title="Terminals">
      <div class="page narrow">
        {agents.length > 0 ? (
          <section class="panel" aria-label="Running workspaces">
            <ul class="list">
              {agents.map(({ workspace, agent }) => (
                <li key={agent.id}>
                  <a class="item" href={`/terminals/${agent.id}`}>
                    <State kind={getWorkspaceState(workspace)}>
                      <span class="clip">
                        {workspace.name}
                        {workspace.agents.length > 1 && ` / ${agent.name}`}
                      </span>
                    </State>
                    <Time at={workspace.last_used_at} class="dim small" />
                    <span class="sub clip">
                      {[
                        agent.status === "connected" ? formatOpenCount(agent.id) : agent.status,
                        workspace.template_display_name,
                      ]
                        .filter(Boolean)
                        .join(" · ")}
                    </span>
                  </a>
                </li>
              ))}
            </ul>
          </section>
        ) : workspacesLoaded.value ? (
          <Empty icon="terminal" title="No running workspaces" text="Start a workspace to open a terminal.">
            <ButtonLink look="primary" href="/workspaces">
              Workspaces
            </ButtonLink>
          </Empty>
        ) : (
          <Skeleton lines={4} />
        )}
      </div>
    </Frame>
  );
}
