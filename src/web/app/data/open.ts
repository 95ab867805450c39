// Opens the apps, ports and editors of a workspace. An editor gets a new key when its button is pressed; an external app gets one only
// after a page asked the user.
import { formatLabel } from "#base/links/app-label.ts";
import { type Editor, formatEditorLink, formatGatewayLink } from "#base/links/editor-links.ts";
import { canGetKey, toConsentPath } from "#base/links/external-link.ts";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import type { App } from "#schema/workspaces/app.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { showToast } from "../shell/toasts.tsx";
import { call } from "./api.ts";

export type AgentTarget = { readonly workspace: Workspace; readonly agent: WorkspaceAgent };

/** The parts of the URL of an app or a port. */
type NamedAgent = {
  readonly workspace: Pick<Workspace, "name" | "owner_name">;
  readonly agent: Pick<WorkspaceAgent, "name">;
};

/** Returns the URL of an app or a port (`8080`, `8080s`): on a subdomain if a wildcard `host` is configured, otherwise below a path. */
const toAppUrl = ({ workspace, agent }: NamedAgent, app: string, host: string): string => {
  const label = formatLabel({ app, agent: agent.name, workspace: workspace.name, user: workspace.owner_name });
  if (host && label) return `${location.protocol}//${host.replace("*", label)}/`;
  return `/@${workspace.owner_name}/${workspace.name}.${agent.name}/apps/${app}/`;
};

/** Returns the URL of a port. `host` is the wildcard for subdomains, or empty. */
export const toPortUrl = (target: NamedAgent, port: number, isSecure: boolean, host: string): string =>
  toAppUrl(target, `${port}${isSecure ? "s" : ""}`, host);

/** How an app is opened: in this page, in a separate page, or by a local program that receives the link. */
export type OpenAction =
  | { readonly way: "here" | "tab" | "window"; readonly href: string }
  | { readonly way: "program"; readonly act: () => Promise<void> };

/**
 * Decides how the app is opened. `host` is the wildcard for subdomains; without one, an app that requires a subdomain opens a page that
 * explains what is missing.
 */
export const chooseOpenAction = (target: AgentTarget, app: App, host: string): OpenAction => {
  const way = app.open_in === "tab" ? "tab" : "window";
  if (app.external) {
    if (/^https?:/i.test(app.url)) return { way: "tab", href: app.url };
    // The link contains a key only if the template has a placeholder for it, and only after the user agrees on a page that names the
    // destination.
    const { workspace, agent } = target;
    if (canGetKey(agent, app)) {
      return { way: "tab", href: toConsentPath({ workspace_id: workspace.id, agent: agent.name, app: app.slug }) };
    }
    return { way: "program", act: async () => openInProgram(app.display_name || app.slug, app.url) };
  }
  if (app.command) {
    return { way: "here", href: `/terminals/${target.agent.id}?app=${app.slug}` };
  }
  return { way, href: toAppUrl(target, app.slug, host) };
};

const EDITOR_NAMES: Readonly<Record<Editor | "jetbrains", string>> = {
  vscode: "VS Code",
  "vscode-insiders": "VS Code Insiders",
  vscodium: "VSCodium",
  cursor: "Cursor",
  windsurf: "Windsurf",
  jetbrains: "JetBrains Gateway",
};

/** Editors by their names in templates. Editors without a name in templates are shown if VS Code is. */
const EDITORS_BY_APP: Readonly<Record<string, readonly Editor[]>> = {
  vscode: ["vscode", "vscodium", "cursor", "windsurf"],
  vscode_insiders: ["vscode-insiders"],
};

/** True if the template shows this built-in app. A template that names none shows all. */
export const showsApp = ({ display_apps }: WorkspaceAgent, name: string): boolean =>
  display_apps.length === 0 || display_apps.includes(name);

const LAST_EDITOR_KEY = "slipway.editor";

/** Lists the editors that can open this agent, the most recently used first. */
export const listEditors = (target: AgentTarget): { readonly label: string; readonly act: () => Promise<void> }[] => {
  const { agent } = target;
  const shown = Object.entries(EDITORS_BY_APP).flatMap(([name, editors]) => (showsApp(agent, name) ? editors : []));
  const editors: (Editor | "jetbrains")[] = [...shown, "jetbrains"];
  const last = localStorage.getItem(LAST_EDITOR_KEY);
  return editors
    .sort((a, b) => Number(b === last) - Number(a === last))
    .map((editor) => ({ label: EDITOR_NAMES[editor], act: () => openEditor(editor, target) }));
};

/** The editor gets a key for this workspace only. */
const openEditor = async (editor: Editor | "jetbrains", { workspace, agent }: AgentTarget): Promise<void> => {
  localStorage.setItem(LAST_EDITOR_KEY, editor);
  const { key } = await call("POST /workspaceagents/:workspaceagent/keys", { path: { workspaceagent: agent.id } });
  const target = {
    url: new URL(location.origin),
    owner: workspace.owner_name,
    workspace: workspace.name,
    agent: agent.name,
    folder: agent.expanded_directory || undefined,
    token: key,
  };
  openInProgram(
    EDITOR_NAMES[editor],
    editor === "jetbrains" ? formatGatewayLink(target) : formatEditorLink(editor, target),
  );
};

/** Passes the link to the browser, which opens the program or reports that none is installed. */
const openInProgram = (name: string, link: string): void => {
  location.assign(link);
  showToast(`Opening ${name}. If nothing happens, install the editor or its extension on this computer.`);
};
