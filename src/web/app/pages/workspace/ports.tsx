// The listening ports of a workspace, and who can open them.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import type { PortShare, ShareLevel } from "#schema/workspaces/port-share.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { call, callServer } from "../../data/api.ts";
import { type AgentTarget, toPortUrl } from "../../data/open.ts";
import { useResource } from "../../data/resource.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, Options } from "../../parts/field.tsx";
import { Fold } from "../../parts/fold.tsx";
import { writeTextTo } from "../../parts/handlers.ts";
import { Icon } from "../../parts/icon.tsx";
import { Menu } from "../../parts/menu.tsx";
import { showToast } from "../../shell/toasts.tsx";

export const LEVEL_TEXTS: Record<ShareLevel, string> = {
  owner: "you",
  organization: "the organization",
  authenticated: "signed-in users",
  public: "anyone",
};

type PortsProps = {
  readonly target: AgentTarget;
  /** The wildcard hostname of apps, or empty. */
  readonly host: string;
  readonly shares: readonly PortShare[];
  readonly onChanged: () => Promise<void>;
};

/** Shows listening ports and shared ports without a listener. Scanned when the page is opened. */
export const Ports = ({ target, host, shares, onChanged }: PortsProps) => {
  const { workspace, agent } = target;
  const { state, reload } = useResource(`ports ${agent.id}`, () =>
    call("GET /workspaceagents/:workspaceagent/listening-ports", { path: { workspaceagent: agent.id } }),
  );
  useEffect(() => {
    const reloadIfVisible = (): void => void (document.hidden || reload());
    document.addEventListener("visibilitychange", reloadIfVisible);
    return () => document.removeEventListener("visibilitychange", reloadIfVisible);
  }, []);
  const agentShares = shares.filter((one) => one.agent_name === agent.name);
  const listeningPorts = state.value.data?.ports ?? [];
  const ports = [
    ...listeningPorts.map(({ port, process_name, is_own = true }) => ({
      port,
      name: process_name,
      is_own,
      share: agentShares.find((one) => one.port === port),
    })),
    ...agentShares
      .filter(({ port }) => !listeningPorts.some((one) => one.port === port))
      .map((share) => ({ port: share.port, name: "not listening", is_own: true, share })),
  ].sort((a, b) => a.port - b.port);
  // A shared port of the host machine is treated like the workspace's own.
  const workspacePorts = ports.filter(({ is_own, share }) => is_own || share);
  const machinePorts = ports.filter((one) => !workspacePorts.includes(one));
  const setLevel = async (port: number, share_level: ShareLevel, protocol: "http" | "https"): Promise<void> => {
    const path = { workspace: workspace.id };
    const getLevel = (shareList: readonly PortShare[]): ShareLevel =>
      shareList.find((one) => one.agent_name === agent.name && one.port === port)?.share_level ?? "owner";
    const currentLevel = getLevel((await callServer("GET /workspaces/:workspace/port-share", { path })).shares);
    if (currentLevel !== getLevel(shares) && currentLevel !== share_level) {
      await onChanged();
      throw new Error(
        `Someone else changed this in the meantime: port ${port}, ${LEVEL_TEXTS[currentLevel]}. Choose again to replace it.`,
      );
    }
    if (share_level === "owner") {
      await call("DELETE /workspaces/:workspace/port-share", { path, body: { agent_name: agent.name, port } });
    } else {
      await call("POST /workspaces/:workspace/port-share", {
        path,
        body: { agent_name: agent.name, port, protocol, share_level },
      });
    }
    await onChanged();
    showToast(
      share_level === "owner" ? `Port ${port} is now private` : `Port ${port} is open to ${LEVEL_TEXTS[share_level]}`,
    );
  };
  const renderPort = (one: (typeof ports)[number]): ComponentChildren => (
    <PortItem
      key={one.port}
      port={one.port}
      name={one.name}
      level={one.share?.share_level ?? "owner"}
      href={toPortUrl(target, one.port, one.share?.protocol === "https", host)}
      setLevel={(level) => setLevel(one.port, level, one.share?.protocol ?? "http")}
    />
  );
  return (
    <>
      {workspacePorts.map(renderPort)}
      <li class="item">
        <span class="dim small">
          {workspacePorts.length > 0 ? "" : agent.apps.length > 0 ? "No other listening ports." : "No listening ports."}
        </span>
        <IconButton icon="restart" small label={`Refresh ports of ${agent.name}`} onPress={reload} />
      </li>
      {machinePorts.length > 0 && (
        <li>
          <Fold class="pad" summary={`Other ports on this machine (${machinePorts.length})`}>
            <ul class="list">{machinePorts.map(renderPort)}</ul>
          </Fold>
        </li>
      )}
    </>
  );
};

type PortItemProps = {
  readonly port: number;
  readonly name: string;
  readonly level: ShareLevel;
  readonly href: string;
  readonly setLevel: (level: ShareLevel) => Promise<void>;
};

const PortItem = ({ port, name, level, href, setLevel }: PortItemProps) => (
  <li class="item">
    <a class="line" href={href} target="_blank" rel="noreferrer">
      <span class="dim">
        <Icon name="globe" />
      </span>
      <span class="med num">:{port}</span>
      <span class="dim clip small">{name}</span>
    </a>
    <Menu
      label={`Access to port ${port}`}
      small
      items={() =>
        (Object.keys(LEVEL_TEXTS) as ShareLevel[]).map((one) => ({
          label: one === "owner" ? "Only you" : LEVEL_TEXTS[one],
          icon: level === one ? ("check" as const) : undefined,
          act: () => setLevel(one),
        }))
      }
    >
      <span class="badge">{LEVEL_TEXTS[level]}</span>
    </Menu>
  </li>
);

type ShareProps = {
  workspace: Workspace;
  agents: readonly WorkspaceAgent[];
  close: () => void;
  onShared: () => Promise<void>;
};

export const ShareDialog = ({ workspace, agents, close, onShared }: ShareProps) => {
  const level = useSignal<ShareLevel>("organization");
  const protocol = useSignal<"http" | "https">("http");
  const agent = useSignal(agents[0]?.name ?? "");
  const port = useSignal("");
  const sharePort = async (): Promise<void> => {
    const body = {
      agent_name: agent.value,
      port: Number(port.value),
      protocol: protocol.value,
      share_level: level.value,
    };
    await call("POST /workspaces/:workspace/port-share", { path: { workspace: workspace.id }, body });
    await onShared();
    close();
    showToast(`Port ${port.value} is shared`);
  };
  return (
    <Dialog
      title="Share a port"
      onClose={close}
      footer={
        <>
          <Button onPress={close}>Cancel</Button>
          <Button look="primary" disabled={port.value === ""} onPress={sharePort}>
            Share port
          </Button>
        </>
      }
    >
      <Field label="Port" type="number" min={9} max={65535} required value={port.value} onInput={writeTextTo(port)} />
      {agents.length > 1 && (
        <Options
          label="Agent"
          value={agent.value}
          choices={agents.map(({ name }) => ({ value: name, label: name }))}
          onPick={(value) => (agent.value = value)}
        />
      )}
      <Options
        label="Protocol"
        value={protocol.value}
        choices={[
          { value: "http", label: "HTTP" },
          { value: "https", label: "HTTPS" },
        ]}
        onPick={(value) => (protocol.value = value as "http" | "https")}
      />
      <Options
        label="Access"
        value={level.value}
        choices={(["organization", "authenticated", "public"] as const).map((value) => ({
          value,
          label: LEVEL_TEXTS[value],
        }))}
        hint="The template may restrict this further."
        onPick={(value) => (level.value = value as ShareLevel)}
      />
    </Dialog>
  );
};
