// The links that open a workspace in a program of the person's machine, for the command line and for pages. Pure. The editors' plug-ins
// take them as their own documentation says: the plug-in for VS Code and its forks in its contributing guide, the one for JetBrains
// Gateway in the fields of its links.

export type Place = {
  /** The server. */
  url: URL;
  owner: string;
  workspace: string;
  agent: string;
  /** A folder in the workspace; undefined: the one the agent begins in. */
  folder: string | undefined;
  /** A session key for the plug-in; undefined: it asks. */
  token: string | undefined;
};

/** Programs that VS Code's plug-in runs in, by the scheme of their links. */
export const EDITORS = ["vscode", "vscode-insiders", "vscodium", "cursor", "windsurf"] as const;

export type Editor = (typeof EDITORS)[number];

export const editorLink = (editor: Editor, place: Place): string =>
  `${editor}://coder.coder-remote/open?${formatFields(place)}`;

/** JetBrains Gateway; it asks which of its editors where the link does not say. */
export const gatewayLink = (place: Place): string => `jetbrains-gateway://connect#type=coder&${formatFields(place)}`;

const formatFields = ({ url, owner, workspace, agent, folder, token }: Place): string =>
  Object.entries({ url: url.origin, owner, workspace, agent, folder, token })
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`]))
    .join("&");
