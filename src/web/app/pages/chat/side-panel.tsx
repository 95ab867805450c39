// The panel alongside the conversation: changes, terminal, ports, context.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { formatSize } from "#base/format-size.ts";
import type { Chat } from "#schema/chats/chat.ts";
import { call } from "../../data/api.ts";
import { toPortUrl } from "../../data/open.ts";
import { useResource } from "../../data/resource.ts";
import { workspaces } from "../../data/workspaces.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Failed } from "../../parts/empty.tsx";
import { setTo } from "../../parts/handlers.ts";
import { getLastTerminalId, TerminalBox } from "../../parts/terminal/terminal.tsx";
import { Changes, listChangedFiles } from "./changes.tsx";
import { Desktop } from "./desktop.tsx";
import { followGit } from "./git.ts";
import type { LiveChat } from "./live-chat.ts";

const TABS = ["Changes", "Terminal", "Desktop", "Ports", "Context"] as const;

type SidePanelProps = {
  readonly chat: LiveChat;
  readonly chatData: Chat | undefined;
  readonly isOwner: boolean;
  readonly onClose: () => void;
};

export const SidePanel = ({ chat, chatData, isOwner, onClose }: SidePanelProps) => {
  const tab = useSignal<(typeof TABS)[number]>("Changes");
  const agent = chatData?.agent_id;
  useEffect(() => (agent ? followGit(chat.id) : undefined), [chat.id, agent]);
  const changedFileCount = listChangedFiles().length;
  return (
    <aside class="aside" aria-label="Chat panel">
      <div class="tabs">
        <div class="line" role="tablist" aria-label="Chat panel">
          {TABS.map((one) => (
            <button
              key={one}
              type="button"
              role="tab"
              id={`tab-${one}`}
              aria-selected={tab.value === one}
              aria-controls="chat-panel"
              onClick={setTo(tab, one)}
            >
              {one}
              {one === "Changes" && changedFileCount > 0 && <span class="count">{changedFileCount}</span>}
            </button>
          ))}
        </div>
        <IconButton icon="x" small class="push" label="Close" onPress={onClose} />
      </div>
      <div class="body" id="chat-panel" role="tabpanel" aria-labelledby={`tab-${tab.value}`} tabIndex={0}>
        {!chatData ? null : tab.value === "Context" ? (
          <ContextPanel chat={chat} chatData={chatData} isOwner={isOwner} />
        ) : !agent ? (
          <p class="pad mut">This chat has no workspace.</p>
        ) : tab.value === "Changes" ? (
          <Changes chat={chat} isOwner={isOwner} />
        ) : tab.value === "Terminal" ? (
          <div class="term-side">
            <TerminalBox agent_id={agent} terminalId={getLastTerminalId(agent)} label="Terminal" />
          </div>
        ) : tab.value === "Desktop" ? (
          <Desktop chat={chat.id} isOwner={isOwner} />
        ) : (
          <Ports chatData={chatData} agent_id={agent} />
        )}
      </div>
    </aside>
  );
};

const Ports = ({ chatData, agent_id }: { chatData: Chat; agent_id: string }) => {
  const { state, reload } = useResource(`ports ${agent_id}`, () =>
    call("GET /workspaceagents/:workspaceagent/listening-ports", { path: { workspaceagent: agent_id } }),
  );
  const hosts = useResource("app host", () => call("GET /applications/host"));
  const workspace = workspaces.value.get(chatData.workspace_id ?? "");
  const agent = workspace?.agents.find(({ id }) => id === agent_id);
  const host = hosts.state.value.data?.host;
  const { data, error } = state.value;
  const userPorts = data?.ports.filter(({ is_own = true }) => is_own);
  if (error !== undefined && data === undefined)
    return <Failed title="Can't load the ports" error={error} reload={reload} />;
  return (
    <>
      <div class="line pad">
        <span class="mut">{userPorts?.length === 0 ? "The workspace has no listening ports." : "Listening ports"}</span>
        <span class="push">
          <Button small onPress={reload}>
            Refresh
          </Button>
        </span>
      </div>
      <ul class="list">
        {userPorts?.map(({ port, process_name }) => (
          <li key={port} class="item">
            {workspace && agent && host !== undefined ? (
              <a class="num" href={toPortUrl({ workspace, agent }, port, false, host)} target="_blank" rel="noreferrer">
                :{port}
              </a>
            ) : (
              <span class="num">:{port}</span>
            )}
            <span class="dim small">{process_name}</span>
          </li>
        ))}
      </ul>
    </>
  );
};

const KINDS = {
  instruction_file: "Instructions",
  skill: "Skill",
  mcp_config: "MCP",
  mcp_server: "MCP server",
} as const;

/** The context that a chat got from its workspace, and whether it has changed since. */
const ContextPanel = ({ chat, chatData, isOwner }: Pick<SidePanelProps, "chat" | "isOwner"> & { chatData: Chat }) => {
  const { context, files } = chatData;
  const reloadContext = async (): Promise<void> => {
    chat.chat.value = await call("PUT /chats/:chat/context", { path: { chat: chat.id } });
  };
  return (
    <>
      {context?.dirty && (
        <div class="banner attn">
          <span>The workspace's context has changed.</span>
          {isOwner && (
            <span class="push">
              <Button small onPress={reloadContext}>
                Update context
              </Button>
            </span>
          )}
        </div>
      )}
      {context?.error && <p class="pad t-bad">{context.error}</p>}
      {(context?.resources.length ?? 0) + files.length === 0 && (
        <p class="pad mut">No instruction files, skills or attachments.</p>
      )}
      <ul class="list">
        {context?.resources.map(({ kind, source, status, error, skill_name, size_bytes }) => (
          <li key={`${kind} ${source}`} class="item">
            <span class="clip">{skill_name ?? source}</span>
            <span class="dim small">{size_bytes > 0 ? formatSize(size_bytes) : ""}</span>
            <span class="sub clip">
              {KINDS[kind]}
              {status !== "ok" && `, ${status}`}
              {error && `: ${error}`}
            </span>
          </li>
        ))}
        {files.map(({ id, name, size_bytes }) => (
          <li key={id} class="item">
            <a class="clip" href={`/api/v2/chats/files/${id}`} target="_blank" rel="noreferrer">
              {name}
            </a>
            <span class="dim small">{formatSize(size_bytes)}</span>
            <span class="sub">Attached</span>
          </li>
        ))}
      </ul>
    </>
  );
};
