// Links of external apps: where a template leaves a place for a key, and where such a link leads. Pure, for the server, the command line
// and pages.

/** Templates of the ecosystem leave this place for a key. */
export const KEY_PLACEHOLDER = "$SESSION_TOKEN";

type ExternalApp = { readonly external: boolean; readonly url: string };

/** Whether the link of an app has a place for a key. Links to web pages never get one. */
export const wantsKey = ({ external, url }: ExternalApp): boolean =>
  external && url.includes(KEY_PLACEHOLDER) && !/^https?:/i.test(url);

/** As the API shows it to either kind of client. */
type ShownAgent = { readonly parent_id: string | null | { readonly valid: boolean } };

/** Whether an app may get a key: its link has a place for one, and the template declared it, not a program inside the workspace. */
export const mayGetKey = ({ parent_id }: ShownAgent, app: ExternalApp): boolean =>
  wantsKey(app) && (typeof parent_id === "object" ? parent_id?.valid !== true : false);

/** The link with this key, or with nothing in its place. */
export const withKey = (url: string, key: string): string => url.replaceAll(KEY_PLACEHOLDER, encodeURIComponent(key));

/** Where a person agrees that an app gets a key, below the access URL. */
export const consentPath = (place: { workspace_id: string; agent: string; app: string }): string =>
  `/open-app?${new URLSearchParams({ workspace: place.workspace_id, agent: place.agent, app: place.app })}`;

/** What a link says of where it leads. */
export type LinkTarget = {
  /** What decides which program opens it, such as `vscode`. */
  readonly scheme: string;
  /** The part of the program that gets it, such as an extension; empty when the link names none. */
  readonly authority: string;
  /** Every host that the link names, in its own place or in one of its parameters, without the authority. */
  readonly hosts: readonly string[];
};

/** Reads where a link leads; undefined for a text that is no link. */
export const linkTarget = (link: string): LinkTarget | undefined => {
  if (!URL.canParse(link)) return undefined;
  const { protocol, host } = new URL(link);
  return { scheme: protocol.slice(0, -1), authority: host, hosts: [...hostsIn(link.slice(protocol.length), 0)] };
};

const NESTED = 3;

/** Hosts of the addresses that a text has inside, also where they are percent-encoded, one in another. */
const hostsIn = (text: string, depth: number): Set<string> => {
  const hosts = new Set<string>();
  for (const [address] of text.matchAll(/[a-z][a-z0-9+.-]*:\/\/[^\s&#"'<>]+/gi)) {
    if (URL.canParse(address) && new URL(address).host !== "") hosts.add(new URL(address).host);
  }
  if (depth < NESTED && text.includes("%")) for (const host of hostsIn(decoded(text), depth + 1)) hosts.add(host);
  return hosts;
};

const decoded = (text: string): string =>
  text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return "";
    }
  });
