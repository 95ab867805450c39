// One workspace: its state and reason, live logs, apps and ports, terminal, parameters, schedule, builds.

import { useEffect, useMemo } from "preact/hooks";
import { useLocation, useRoute } from "preact-iso/router";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { Problem } from "../../data/api.ts";
import { LogFeed } from "../../data/logs.ts";
import { setName } from "../../data/names.ts";
import { listAgents, toSummary, useWorkspace } from "../../data/one-workspace.ts";
import { canStart, isTransitional } from "../../data/states.ts";
import * as actions from "../../data/workspace-actions.ts";
import { workspaces, workspacesLoaded } from "../../data/workspaces.ts";
import { Button, ButtonLink, IconButton } from "../../parts/button.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Icon } from "../../parts/icon.tsx";
import { LogView } from "../../parts/log-view.tsx";
import { Menu } from "../../parts/menu.tsx";
import { Tabs } from "../../parts/sections.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { getLastTerminalId, TerminalBox } from "../../parts/terminal/terminal.tsx";
import { Frame } from "../../shell/frame.tsx";
import { onKeys } from "../../shell/keys.ts";
import { showError } from "../../shell/toasts.tsx";
import { ForkDialog } from "../workspaces/fork.tsx";
import { listAppItems, listMenuItems } from "../workspaces/row-menu.ts";
import { Activity } from "./activity.tsx";
import { Apps } from "./apps.tsx";
import { AutostopWarning } from "./autostop-warning.tsx";
import { Builds } from "./builds.tsx";
import { WorkspaceDetails } from "./facts.tsx";
import { Files, NoFiles } from "./files.tsx";
import { HomeBackupList } from "./home-backups.tsx";
import { OutOfSpace } from "./out-of-space.tsx";
import { Parameters } from "./parameters.tsx";
import { Schedule } from "./schedule.tsx";
import { Sharing } from "./sharing.tsx";
import { SnapshotList } from "./snapshots.tsx";
import { WorkspaceStats } from "./stats.tsx";
import { Timings } from "./timings.tsx";

// A notice on a workspace's page that the owner's dotfiles could not be installed.
type Script = WorkspaceAgent["scripts"][number];

const MINUTE_NS = 60e9;

const DotfilesFailed = ({ agents, logsHref }: { agents: readonly WorkspaceAgent[]; logsHref: string }) => (
  <>
    {agents.flatMap(({ id, scripts }) =>
      scripts
        .filter(({ is_dotfiles, status }) => is_dotfiles && (status === "exit_failure" || status === "timed_out"))
        .map((script) => (
          <div key={id} class="banner" role="status">
            <span class="t-attn">
              <Icon name="warn" />
            </span>
            <span>
              The owner's dotfiles were not installed: {describeFailure(script)}. The workspace started without them.
            </span>
            <a class="btn sm ghost push" href={logsHref}>
              Show log
            </a>
          </div>
        )),
    )}
  </>
);

const describeFailure = ({ status, exit_code, timeout }: Script): string =>
  status === "timed_out"
    ? `they took longer than ${timeout / MINUTE_NS} minutes`
    : `the script failed with exit code ${exit_code}`;

const TABS = [
  ["", "Overview"],
  ["logs", "Logs"],
  ["terminal", "Terminal"],
  ["files", "Files"],
  ["parameters", "Parameters"],
  ["schedule", "Schedule"],
  ["snapshots", "Snapshots"],
  ["builds", "Builds"],
  ["sharing", "Sharing"],
] as const;

export default function WorkspacePage() {
  const { params } = useRoute();
  const id = params.workspace ?? "";
  return <WorkspaceView key={id} id={id} tab={params.tab ?? ""} />;
}

const CRUMBS = [{ label: "Workspaces", href: "/workspaces" }];

const WorkspaceView = ({ id, tab }: { id: string; tab: string }) => {
  const { state, reload } = useWorkspace(id);
  const { workspace, error } = state.value;
  const listedRow = workspaces.value.get(id);
  // The page does not wait for the list, which may be long.
  const row = listedRow ?? (workspace && !workspacesLoaded.value ? toSummary(workspace) : undefined);
  if (error instanceof Problem && [400, 403, 404, 410].includes(error.status)) {
    return (
      <Frame title="Workspace" crumbs={CRUMBS}>
        {error.status === 410 ? (
          <DeletedWorkspace title="This workspace was deleted" />
        ) : (
          <Empty icon="box" title="Workspace not found" text="It doesn't exist, or it isn't shared with you.">
            <ButtonLink look="primary" href="/workspaces">
              All workspaces
            </ButtonLink>
          </Empty>
        )}
      </Frame>
    );
  }
  if (error && !workspace) {
    return (
      <Frame title="Workspace" crumbs={CRUMBS}>
        <Failed title="Can't load the workspace" error={error} reload={reload} />
      </Frame>
    );
  }
  if (!workspace || !row) {
    return (
      <Frame title={workspace?.name ?? row?.name ?? "Workspace"} crumbs={CRUMBS}>
        <div class="page">
          {workspace && workspace.latest_build.status === "deleted" ? (
            <DeletedWorkspace title={`${workspace.name} was deleted`} />
          ) : (
            <Skeleton lines={6} />
          )}
        </div>
      </Frame>
    );
  }
  return <LoadedWorkspace workspace={workspace} row={row} tab={tab} />;
};

const DeletedWorkspace = ({ title }: { title: string }) => (
  <Empty icon="box" title={title} text="If its template keeps files, you can restore it from the trash.">
    <ButtonLink look="primary" href="/workspaces">
      All workspaces
    </ButtonLink>
    <ButtonLink icon="trash" href="/trash">
      Open trash
    </ButtonLink>
  </Empty>
);

const explainNoAgent = (row: WorkspaceSummary): string =>
  isTransitional(row) || row.status === "stopped" ? `${row.name} is ${row.status}` : "No agent is connected";

const isConnected = ({ status }: WorkspaceAgent): boolean => status === "connected";

const LoadedWorkspace = ({ workspace, row, tab }: { workspace: Workspace; row: WorkspaceSummary; tab: string }) => {
  const basePath = `/workspaces/${row.id}`;
  const feed = useFeed(workspace);
  const agents = listAgents(workspace);
  const { query } = useLocation();
  const agent = agents.find(({ name }) => name === query.agent) ?? agents.find(isConnected) ?? agents[0];
  const isAgentConnected = agent?.status === "connected";
  setName(row.id, `${row.owner_name}/${row.name}`);
  useEffect(
    () =>
      onKeys(
        "s",
        () =>
          void (row.status === "running" ? actions.stopWorkspace(row) : canStart(row) && actions.startWorkspace(row)),
      ),
    [row],
  );
  // Starts the workspace only when the user opens the terminal; one that stops while the page is open stays stopped.
  useEffect(() => {
    const isPageVisible = document.visibilityState === "visible";
    if (tab === "terminal" && row.status === "stopped" && isPageVisible) actions.startOnConnect(row).catch(showError);
  }, [tab]);
  const crumbs = [
    ...CRUMBS,
    { label: row.owner_name, href: `/workspaces?q=owner%3A${encodeURIComponent(row.owner_name)}` },
  ];
  const renderLog = (isTall: boolean) => (
    <div class={isTall ? "tall-log" : undefined}>
      <LogView
        key={workspace.latest_build.id}
        title="Build and agent log"
        feed={feed}
        sources={["build", ...agents.map(({ name }) => name)]}
        file={`${row.name}-build-${workspace.latest_build.build_number}.log`}
        empty={isTransitional(row) ? "Waiting for output…" : "No output."}
      />
    </div>
  );
  return (
    <Frame
      title={row.name}
      crumbs={crumbs}
      note={
        <IconButton
          icon="pin"
          class="desk"
          label={row.favorite ? "Unpin" : "Pin"}
          pressed={row.favorite}
          onPress={() => actions.togglePin(row)}
        />
      }
      actions={
        <>
          {row.status === "running" && (
            <ButtonLink class="desk" icon="chat" href={`/chats?workspace=${row.id}`}>
              New chat
            </ButtonLink>
          )}
          <MainAction row={row} />
          <Menu label={`More for ${row.name}`} items={() => listMenuItems(row)} loadMore={() => listAppItems(row)} />
        </>
      }
    >
      {row.outdated && !isTransitional(row) && (
        <div class="banner">
          <span class="t-busy">
            <Icon name="up" />
          </span>
          <span>
            Template <b>{row.template_display_name || row.template_name}</b> has a new version.
          </span>
          <span class="push line">
            <a class="btn sm ghost" href={`${basePath}/parameters`}>
              Compare
            </a>
            <Button small onPress={() => actions.updateWorkspace(row)}>
              Update
            </Button>
          </span>
        </div>
      )}
      <AutostopWarning row={row} />
      <OutOfSpace agents={agents} />
      <DotfilesFailed agents={agents} logsHref={`${basePath}/logs`} />
      <ForkDialog />
      <div class="page top">
        <WorkspaceStats row={row} workspace={workspace} />
        {row.status === "running" && (
          <div class="line wrap phone">
            <ButtonLink look="primary" icon="terminal" href={`${basePath}/terminal`}>
              Terminal
            </ButtonLink>
            <ButtonLink icon="chat" href={`/chats?workspace=${row.id}`}>
              New chat
            </ButtonLink>
            <Button icon="stop" onPress={() => actions.stopWorkspace(row)}>
              Stop
            </Button>
            <Button icon="restart" onPress={() => actions.restartWorkspace(row)}>
              Restart
            </Button>
          </div>
        )}
      </div>
      <Tabs
        label="Workspace sections"
        tabs={TABS.map(([name, label]) => ({ name, label, href: name ? `${basePath}/${name}` : basePath }))}
        open={tab}
      />
      {tab === "terminal" ? (
        <div class="page-high">
          <AgentChoice agents={agents} agent={agent} />
          {agent && isAgentConnected ? (
            <TerminalBox
              key={agent.id}
              agent_id={agent.id}
              terminalId={getLastTerminalId(agent.id)}
              label={`Terminal of ${row.name}`}
            />
          ) : (
            <Empty icon="terminal" title={explainNoAgent(row)} text="The terminal opens when the workspace is running.">
              {canStart(row) && (
                <Button look="primary" icon="play" onPress={() => actions.startWorkspace(row)}>
                  Start
                </Button>
              )}
            </Empty>
          )}
        </div>
      ) : (
        <div class="page">
          {tab === "logs" && renderLog(true)}
          {tab === "files" && <AgentChoice agents={agents} agent={agent} />}
          {tab === "files" &&
            (agent && isAgentConnected ? (
              <Files key={agent.id} workspace={workspace} agent={agent} />
            ) : (
              <NoFiles
                title={explainNoAgent(row)}
                onStart={canStart(row) ? () => actions.startWorkspace(row) : undefined}
              />
            ))}
          {tab === "parameters" && <Parameters workspace={workspace} row={row} />}
          {tab === "schedule" && <Schedule workspace={workspace} row={row} />}
          {tab === "snapshots" && (
            <>
              <SnapshotList workspace={workspace} />
              <HomeBackupList workspace={workspace} />
            </>
          )}
          {tab === "builds" && <Builds workspace={workspace} />}
          {tab === "sharing" && <Sharing workspace={workspace} row={row} />}
          {!TABS.some(([name]) => name === tab) && (
            <Empty icon="search" title="Section not found" text="The URL doesn't match any section." />
          )}
          {tab === "" && (
            <div class={row.status === "running" ? "split work" : "split"}>
              <div class="stack loose">
                {renderLog(false)}
                <Timings build={workspace.latest_build} />
              </div>
              <div class="stack loose">
                <Apps workspace={workspace} />
                <Activity workspace={workspace} />
                <WorkspaceDetails workspace={workspace} />
              </div>
            </div>
          )}
        </div>
      )}
    </Frame>
  );
};

const MainAction = ({ row }: { row: WorkspaceSummary }) => {
  if (isTransitional(row)) {
    return (
      <Button class="desk" onPress={() => actions.cancelBuild(row)}>
        Cancel build
      </Button>
    );
  }
  return (
    <>
      {canStart(row) && (
        <Button look="primary" icon="play" keys="S" onPress={() => actions.startWorkspace(row)}>
          Start
        </Button>
      )}
      {row.status === "running" && (
        <span class="group desk">
          <Button icon="stop" keys="S" onPress={() => actions.stopWorkspace(row)}>
            Stop
          </Button>
          <Button icon="restart" onPress={() => actions.restartWorkspace(row)}>
            Restart
          </Button>
        </span>
      )}
    </>
  );
};

// Selects the agent of a terminal or file page, if the workspace has several. The choice is in the address, so that a link leads to the
// same agent.
type AgentChoiceProps = { readonly agents: readonly WorkspaceAgent[]; readonly agent: WorkspaceAgent | undefined };

const AgentChoice = ({ agents, agent }: AgentChoiceProps) => {
  const { path, route } = useLocation();
  if (agents.length < 2) return null;
  return (
    <div class="group of-agents" role="group" aria-label="Agent">
      {agents.map((one) => (
        <Button
          key={one.id}
          small
          pressed={one === agent}
          onPress={() => route(`${path}?${new URLSearchParams({ agent: one.name })}`)}
        >
          {one.name}
        </Button>
      ))}
    </div>
  );
};

/** Returns the logs of the latest build and its agents. A new build starts a new feed. */
const useFeed = (workspace: Workspace): LogFeed => {
  const { id } = workspace.latest_build;
  const feed = useMemo(() => new LogFeed(), [id]);
  useEffect(() => () => feed.end(), [feed]);
  useEffect(() => {
    feed.follow({ source: "build", path: `/workspacebuilds/${id}/logs` });
    for (const agent of listAgents(workspace)) {
      feed.follow({ source: agent.name, path: `/workspaceagents/${agent.id}/logs` });
    }
  }, [
    feed,
    listAgents(workspace)
      .map((agent) => agent.id)
      .join(" "),
  ]);
  return feed;
};
