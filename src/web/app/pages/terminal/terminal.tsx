// The terminals of an agent, in tabs and splits. The browser stores the layout, so that running terminals are shown again after a reload or
// on another day.
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { useLocation, useRoute } from "preact-iso/router";
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { call } from "../../data/api.ts";
import { useTitle } from "../../data/branding.ts";
import { getWorkspaceState } from "../../data/states.ts";
import * as actions from "../../data/workspace-actions.ts";
import { workspaces } from "../../data/workspaces.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Empty } from "../../parts/empty.tsx";
import { Menu, type MenuItem } from "../../parts/menu.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { State } from "../../parts/state.tsx";
import { uploadFiles } from "../../parts/upload-files.ts";
import { showError } from "../../shell/toasts.tsx";
import { Find } from "./find.tsx";
import { KeysRow } from "./keys-row.tsx";
import { listAllPanes, listPanes, type Tab } from "./layout.ts";
import { Pane } from "./pane.tsx";
import { FONT_SIZES, Terminals } from "./session.ts";

export default function TerminalPage() {
  const agent = useRoute().params.agent ?? "";
  return <AgentTerminals key={agent} agent={agent} />;
}

/**
 * `?app=SLUG` starts a new terminal with that app's command. The address never contains a command: a link could make users run anything.
 */
const AgentTerminals = ({ agent }: { agent: string }) => {
  const { query, route, path } = useLocation();
  const app = useRef(query.app).current;
  const command = useSignal<string | undefined>(undefined);
  const isReady = useSignal(!app);
  useEffect(() => {
    if (!app) return;
    // The command was for one terminal. A reload must not run it again.
    route(path, true);
    call("GET /workspaceagents/:workspaceagent", { path: { workspaceagent: agent } })
      .then(({ apps }) => {
        command.value = apps.find(({ slug }) => slug === app)?.command || undefined;
      })
      .catch(showError)
      .finally(() => {
        isReady.value = true;
      });
  }, []);
  return isReady.value ? <OpenTerminals agent={agent} command={command.value} /> : <Skeleton lines={6} />;
};

const OpenTerminals = ({ agent, command }: { agent: string; command: string | undefined }) => {
  const { route } = useLocation();
  const workspace = useComputed(() =>
    [...workspaces.value.values()].find((one) => one.agents.some(({ id }) => id === agent)),
  ).value;
  const backLink = useRef("/terminals");
  backLink.current = workspace ? `/workspaces/${workspace.id}` : "/terminals";
  const terminalsRef = useRef<Terminals>(undefined);
  terminalsRef.current ??= new Terminals(agent, command, () => route(backLink.current));
  const terminals = terminalsRef.current;
  const name = workspace?.name ?? "Terminal";
  useTitle(`${name} · Terminal`);
  const { pane } = terminals.layout.value;
  return (
    <>
      <h1 class="vh">Terminal of {name}</h1>
      <div class="term">
        <TerminalBar terminals={terminals} workspace={workspace} />
        {terminals.isSearching.value && (
          <Find key={pane} session={() => terminals.current} onClose={() => terminals.setSearching(false)} />
        )}
        {workspace && workspace.status !== "running" ? (
          <Empty icon="terminal" title={`${name} is not running`} text="Its terminals reopen when it starts.">
            <Button look="primary" icon="play" onPress={() => actions.startWorkspace(workspace)}>
              Start
            </Button>
          </Empty>
        ) : (
          <TerminalTabs terminals={terminals} />
        )}
        <div>
          <KeysRow session={() => terminals.current} modifier={terminals.modifier} />
          <footer class="foot desk">
            <span>Reopens automatically, terminal {pane.slice(0, 4)}</span>
            <span class="num">{terminals.size.value}</span>
            <span class="push">
              Drop files to upload them to the terminal's folder. Press Alt+Shift+Up or Down to leave.
            </span>
          </footer>
        </div>
      </div>
    </>
  );
};

const TerminalBar = ({ terminals, workspace }: { terminals: Terminals; workspace: WorkspaceSummary | undefined }) => {
  const { tabs, tab } = terminals.layout.value;
  const agent = workspace?.agents.find(({ id }) => id === terminals.agent);
  const picker = useRef<HTMLInputElement>(null);
  const listMenuItems = (): MenuItem[] => [
    { icon: "cols", label: "Split right", note: "Alt Shift R", act: () => terminals.add("right") },
    { icon: "list", label: "Split below", note: "Alt Shift B", act: () => terminals.add("below") },
    ...(listPanes(tabs[tab] ?? { columns: [] }).length > 1
      ? [{ icon: "chev" as const, label: "Next terminal", note: "Alt Shift Right", act: () => terminals.moveBy(1) }]
      : []),
    { icon: "search", label: "Search", note: "Ctrl Shift F", act: () => terminals.setSearching(true) },
    { icon: "up", label: "Upload files", act: () => picker.current?.click() },
    "line",
    ...FONT_SIZES.map(
      (pixels): MenuItem => ({
        label: `Font size ${pixels}`,
        ...(pixels === terminals.fontSize.value ? { icon: "check" as const } : {}),
        act: () => terminals.setFontSize(pixels),
      }),
    ),
  ];
  return (
    <header class="bar">
      {workspace ? (
        <State kind={getWorkspaceState(workspace)}>
          <a class="med clip" href={`/workspaces/${workspace.id}`}>
            {workspace.name}
          </a>
        </State>
      ) : (
        <span class="mut">Terminal</span>
      )}
      {agent && <span class="dim small desk">agent {agent.name}</span>}
      <span class="push line">
        {tabs.length > 1 && (
          <span class="group tabs-of" role="group" aria-label="Tabs">
            {tabs.map((one, index) => (
              <Button
                key={listPanes(one)[0]}
                small
                label={`Tab ${index + 1}`}
                keys={index < 9 ? `Alt ${index + 1}` : undefined}
                pressed={index === tab}
                onPress={() => terminals.selectTab(index)}
              >
                {index + 1} <span class="clip desk">{formatTitle(terminals, one)}</span>
              </Button>
            ))}
          </span>
        )}
        <IconButton icon="plus" label="New terminal" onPress={() => terminals.add("tab")} />
        <IconButton icon="cols" class="desk" label="Split right" onPress={() => terminals.add("right")} />
        <IconButton
          icon="search"
          label="Search terminal"
          pressed={terminals.isSearching.value}
          onPress={() => terminals.setSearching(!terminals.isSearching.value)}
        />
        <Menu label="More terminal actions" items={listMenuItems} />
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          aria-label="Upload files to the terminal's folder"
          onChange={({ currentTarget }) => {
            void uploadFiles(terminals.agent, { terminal: terminals.layout.value.pane }, [
              ...(currentTarget.files ?? []),
            ]);
            currentTarget.value = "";
          }}
        />
      </span>
    </header>
  );
};

const formatTitle = ({ titles }: Terminals, tab: Tab): string => titles.value[listPanes(tab)[0] ?? ""] ?? "";

/** Visited tabs stay mounted, so that returning shows their complete output. */
const TerminalTabs = ({ terminals }: { terminals: Terminals }) => {
  const { tabs, tab, pane } = terminals.layout.value;
  const visitedIds = useRef(new Set<string>());
  for (const id of listPanes(tabs[tab] ?? { columns: [] })) visitedIds.current.add(id);
  const allPanes = listAllPanes(terminals.layout.value);
  return (
    <>
      {tabs
        .filter((one) => listPanes(one).some((id) => visitedIds.current.has(id)))
        .map((one) => (
          <div key={listPanes(one)[0]} class="columns" hidden={one !== tabs[tab]}>
            {one.columns.map((column) => (
              <div key={column[0]} class="column">
                {column.map((id) => (
                  <Pane
                    key={id}
                    terminals={terminals}
                    id={id}
                    number={allPanes.indexOf(id) + 1}
                    isActive={id === pane}
                  />
                ))}
              </div>
            ))}
          </div>
        ))}
    </>
  );
};
