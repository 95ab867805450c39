// Links of external apps: the key placeholder in a template's link, and the target of a link. Pure; used by the server, the command line
// and pages.

/** Placeholder for a session key in template links, as used by existing templates. */
export const KEY_PLACEHOLDER = "$SESSION_TOKEN";

/** Schemes of editors: the default of `external_app_schemes`. The command line opens no other program without a question. */
export const EDITOR_SCHEMES: readonly string[] = [
  ...["vscode", "vscode-insiders", "vscodium", "cursor", "windsurf", "kiro", "positron", "antigravity", "trae"],
  ...["jetbrains", "jetbrains-gateway", "fleet", "zed"],
];

type ExternalApp = { readonly external: boolean; readonly url: string };

/** Returns whether an app's link has a placeholder for a key. Links to web pages never get a key. */
export const hasKeyPlaceholder = ({ external, url }: ExternalApp): boolean =>
  external && url.includes(KEY_PLACEHOLDER) && !/^https?:/i.test(url);

/** As the API returns it to native or upstream clients. */
type AgentResponse = { readonly parent_id: string | null | { readonly valid: boolean } };

/**
 * Returns whether an app can get a key: its link has a placeholder, and the template declared the app, not a program inside the workspace.
 */
export const canGetKey = ({ parent_id }: AgentResponse, app: ExternalApp): boolean =>
  hasKeyPlaceholder(app) && (typeof parent_id === "object" ? parent_id?.valid !== true : false);

/** Returns the link with the key inserted, or with the placeholder removed. */
export const withKey = (url: string, key: string): string => url.replaceAll(KEY_PLACEHOLDER, encodeURIComponent(key));

/** Returns the path below the access URL where a person allows an app to get a key. */
export const toConsentPath = (names: { workspace_id: string; agent: string; app: string }): string =>
  `/open-app?${new URLSearchParams({ workspace: names.workspace_id, agent: names.agent, app: names.app })}`;

/** The target of a link. */
export type LinkTarget = {
  /** Decides which program opens the link, such as `vscode`. */
  readonly scheme: string;
  /** The part of the program that receives the link, such as an extension; empty if the link names none. */
  readonly authority: string;
  /** Every host in the link, as its host or in a parameter, except the authority. */
  readonly hosts: readonly string[];
};

/** The time to find hosts grows with the square of the length. Links of templates and agents have at most half of it. */
const MAX_LINK_LENGTH = 8_192;

/** Parses the target of a link; undefined if the text is not a link or is too long. */
export const parseLinkTarget = (link: string): LinkTarget | undefined => {
  if (link.length > MAX_LINK_LENGTH || !URL.canParse(link)) return undefined;
  const { protocol, host } = new URL(link);
  return { scheme: protocol.slice(0, -1), authority: host, hosts: [...findHosts(link.slice(protocol.length), 0)] };
};

const MAX_NESTING = 3;
const MAX_SCHEME_LENGTH = 64;

/** Returns hosts of URLs inside a text, including nested percent-encoded ones. */
const findHosts = (text: string, depth: number): Set<string> => {
  const hosts = new Set<string>();
  // Each `://` counts, even one in the middle of another URL. A URL is read to its end, because its host can follow a long password.
  for (const { 1: rest = "", index } of text.matchAll(/(?=(:\/\/[^\s&#"'<>]+))/g)) {
    const scheme = /[a-z][a-z0-9+.-]*$/i.exec(text.slice(Math.max(0, index - MAX_SCHEME_LENGTH), index))?.[0];
    const host = scheme !== undefined && URL.parse(scheme + rest)?.host;
    if (host) hosts.add(host);
  }
  if (depth < MAX_NESTING && text.includes("%"))
    for (const host of findHosts(decodeEscapes(text), depth + 1)) hosts.add(host);
  return hosts;
};

const decodeEscapes = (text: string): string =>
  text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return "";
    }
  });
