// Links that open a workspace in a local editor, for the command line and pages. Pure. The format is documented by the editors' plug-ins:
// in the contributing guide of the plug-in for VS Code and its forks, and in the link fields of the plug-in for JetBrains Gateway.

export type EditorTarget = {
  /** The server's URL. */
  url: URL;
  owner: string;
  workspace: string;
  agent: string;
  /** A folder in the workspace; undefined means the agent's default folder. */
  folder: string | undefined;
  /** A session key for the plug-in; if undefined, the plug-in asks for one. */
  token: string | undefined;
};

/** Editors that the VS Code plug-in supports, by their URL scheme. */
export const EDITORS = ["vscode", "vscode-insiders", "vscodium", "cursor", "windsurf"] as const;

export type Editor = (typeof EDITORS)[number];

export const formatEditorLink = (editor: Editor, target: EditorTarget): string =>
  `${editor}://coder.coder-remote/open?${formatFields(target)}`;

/** Returns a link for JetBrains Gateway, which asks for an editor if the link names none. */
export const formatGatewayLink = (target: EditorTarget): string =>
  `jetbrains-gateway://connect#type=coder&${formatFields(target)}`;

const formatFields = ({ url, owner, workspace, agent, folder, token }: EditorTarget): string =>
  Object.entries({ url: url.origin, owner, workspace, agent, folder, token })
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`]))
    .join("&");
