// What can be opened in a workspace: terminal, editors, apps, and listening ports.
import { useSignal } from "@preact/signals";
import { Fragment } from "preact";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { call } from "../../data/api.ts";
import { listAgents } from "../../data/one-workspace.ts";
import { listEditors, showsApp } from "../../data/open.ts";
import { useResource } from "../../data/resource.ts";
import { copyText } from "../../parts/as-command.tsx";
import { Button } from "../../parts/button.tsx";
import { setTo } from "../../parts/handlers.ts";
import { Icon } from "../../parts/icon.tsx";
import { Menu, type MenuItem } from "../../parts/menu.tsx";
import { AppItem } from "./app-item.tsx";
import { Ports, ShareDialog } from "./ports.tsx";

export const Apps = ({ workspace }: { workspace: Workspace }) => {
  const agents = listAgents(workspace);
  const connected = agents.filter(({ status }) => status === "connected");
  const hosts = useResource("app host", () => call("GET /applications/host"));
  const host = hosts.state.value.data?.host ?? "";
  const path = { workspace: workspace.id };
  const shares = useResource(`shares ${workspace.id}`, () => call("GET /workspaces/:workspace/port-share", { path }));
  const isSharing = useSignal(false);
  if (workspace.latest_build.status !== "running") return null;
  return (
    <section class="panel" aria-labelledby="apps">
      <header>
        <h2 id="apps">Apps and ports</h2>
        <span class="push">
          <Button look="ghost" small icon="plus" disabled={connected.length === 0} onPress={setTo(isSharing, true)}>
            Share a port
          </Button>
        </span>
      </header>
      <ul class="list flush">
        {agents.map((agent) => (
          <Fragment key={agent.id}>
            {(agents.length > 1 || agent.status !== "connected") && <AgentItem agent={agent} />}
            {agent.status === "connected" && (
              <AccessLinks workspace={workspace} agent={agent} isOneOfSeveral={agents.length > 1} />
            )}
            {agent.apps
              .filter(({ hidden }) => !hidden)
              .map((app, index, apps) => (
                <AppItem
                  key={app.id}
                  target={{ workspace, agent }}
                  app={app}
                  host={host}
                  heading={app.group !== apps[index - 1]?.group ? app.group : ""}
                />
              ))}
            {agent.status === "connected" && (
              <Ports
                target={{ workspace, agent }}
                host={host}
                shares={shares.state.value.data?.shares ?? []}
                onChanged={shares.reload}
              />
            )}
          </Fragment>
        ))}
      </ul>
      {agents.length === 0 && <p class="pad dim">This workspace has no agents.</p>}
      {isSharing.value && (
        <ShareDialog
          workspace={workspace}
          agents={connected}
          close={setTo(isSharing, false)}
          onShared={shares.reload}
        />
      )}
    </section>
  );
};

/** The heading for an agent, with its problems. */
const AgentItem = ({ agent }: { agent: WorkspaceAgent }) => (
  <li class="item">
    <span class="line">
      <span class="med">{agent.name}</span>
      <span class={agent.status === "connected" || agent.status === "connecting" ? "dim small" : "t-bad small"}>
        {agent.status === "timeout"
          ? "can't connect"
          : agent.status === "disconnected"
            ? "is disconnected"
            : agent.status}
      </span>
    </span>
    {agent.status !== "connected" && agent.troubleshooting_url && (
      <a class="small" href={agent.troubleshooting_url} target="_blank" rel="noreferrer">
        Troubleshooting
      </a>
    )}
  </li>
);

type AccessLinksProps = {
  readonly workspace: Workspace;
  readonly agent: WorkspaceAgent;
  readonly isOneOfSeveral: boolean;
};

/** The terminal, local editors and SSH, if the template shows them. */
const AccessLinks = ({ workspace, agent, isOneOfSeveral }: AccessLinksProps) => {
  const name = `${workspace.name}${isOneOfSeveral ? `.${agent.name}` : ""}`;
  const listItems = (): MenuItem[] => [
    ...listEditors({ workspace, agent }),
    ...(showsApp(agent, "ssh_helper")
      ? [
          "line" as const,
          { icon: "copy" as const, label: "Copy the ssh command", act: () => copyText(`slipway ssh ${name}`) },
        ]
      : []),
  ];
  return (
    <li class="item">
      {showsApp(agent, "web_terminal") ? (
        <a class="line" href={`/workspaces/${workspace.id}/terminal${isOneOfSeveral ? `?agent=${agent.name}` : ""}`}>
          <span class="dim">
            <Icon name="terminal" />
          </span>
          <span class="med">Terminal</span>
          <span class="dim clip small">{agent.expanded_directory || agent.name}</span>
        </a>
      ) : (
        <span class="dim clip small">{agent.expanded_directory || agent.name}</span>
      )}
      <Menu label={`Open ${name} in an editor`} small items={listItems}>
        Editor <Icon name="down" small />
      </Menu>
    </li>
  );
};
