// The hostnames and paths of apps and ports: one label below the wildcard host, or a path below the access URL (rules AX-1, AX-2). Pure. A
// host must have exactly this form, so that a key is never sent to a look-alike host.
import { isLoopback } from "#base/config.ts";
import { type AppName, formatLabel, PART } from "#base/links/app-label.ts";
import { parseHostName } from "#base/network/host-name.ts";

const HOST = /^([a-z0-9-]{1,63})\.([a-z0-9._-]+?)(?::(\d{1,5}))?$/;

/** A domain that browsers resolve to their own machine. */
const OWN_MACHINE = "apps.localhost";

type Deps = {
  readonly config: { readonly wildcard_access_url?: string | undefined };
  readonly accessUrl: URL;
};

/**
 * Returns the app hosts: those of the setting, or names below `apps.localhost` when the server is reached by a loopback name without TLS.
 * `host` is the request's Host header: a forwarded port may differ from the server's, and a request with any other name has no app hosts.
 */
export const makeAppHosts = ({ config, accessUrl }: Deps, host: string = accessUrl.host): AppHosts => {
  const { wildcard_access_url } = config;
  if (wildcard_access_url !== undefined) return new AppHosts(wildcard_access_url, accessUrl);
  const [, name = "", port = "80"] = /^(.+?)(?::(\d{1,5}))?$/.exec(host) ?? [];
  const isOwnMachine = accessUrl.protocol === "http:" && isLoopback(accessUrl.hostname) && isLoopback(name);
  return new AppHosts(isOwnMachine ? `*.${OWN_MACHINE}:${port}` : undefined, accessUrl);
};

/**
 * Returns the origin where a person starts to sign in to an app. On a local machine, people use both `localhost` and `127.0.0.1`, each with
 * its own cookies: the one that is not the access URL is tried first and redirects to the other.
 */
export const getFirstSignInOrigin = (
  { config, accessUrl }: Deps & { readonly config: { readonly allowed_hosts?: readonly string[] | undefined } },
  host: string,
): string => {
  if (!makeAppHosts({ config, accessUrl }, host).isOwnMachine) return accessUrl.origin;
  const other = accessUrl.hostname === "localhost" ? "127.0.0.1" : "localhost";
  const name = (config.allowed_hosts ?? [other]).includes(other) ? other : accessUrl.hostname;
  return `http://${name}${toPort(host)}`;
};

/** Returns the access URL's origin at the request's port, where a person may be signed in even if not at the request's host. */
export const findNextSignInOrigin = (deps: Deps, host: string): string | undefined => {
  const isAccessHost = parseHostName(host) === deps.accessUrl.hostname;
  return isAccessHost || !makeAppHosts(deps, host).isOwnMachine
    ? undefined
    : `http://${deps.accessUrl.hostname}${toPort(host)}`;
};

const toPort = (host: string): string => /:\d{1,5}$/.exec(host)?.[0] ?? "";

export class AppHosts {
  readonly #suffix: string;
  readonly #port: string;
  readonly #protocol: string;

  /** `wildcard` is the setting; without a port, the access URL's is used. */
  constructor(wildcard: string | undefined, accessUrl: URL) {
    const [name = "", port = accessUrl.port] = (wildcard ?? "").slice(2).split(":");
    this.#suffix = name;
    this.#protocol = accessUrl.protocol;
    this.#port = port === DEFAULT_PORT[accessUrl.protocol] ? "" : port;
  }

  /** Returns `*.apps.example.com:8443`; empty if there are no app hosts. */
  get wildcard(): string {
    return this.#suffix === "" ? "" : `*.${this.#suffix}${this.#port && `:${this.#port}`}`;
  }

  /** Returns whether the hosts are names of the browser's own machine. */
  get isOwnMachine(): boolean {
    return this.#suffix === OWN_MACHINE;
  }

  /** Returns whether apps have their own hosts. */
  get exist(): boolean {
    return this.#suffix !== "";
  }

  /** Returns the app whose origin matches exactly, because another port may belong to another program. */
  parseOrigin(origin: string): AppName | undefined {
    if (!URL.canParse(origin)) return undefined;
    const name = this.parseName(new URL(origin).host);
    return name && origin === this.toOrigin(formatLabel(name)) ? name : undefined;
  }

  /** Returns the app in a Host header. The port is ignored, because a reverse proxy may have removed it. */
  parseName(host: string): AppName | undefined {
    const [, label, suffix] = HOST.exec(host.toLowerCase()) ?? [];
    if (label === undefined || this.#suffix === "" || suffix !== this.#suffix) return undefined;
    const [app, agent, workspace, user, ...rest] = label.split("--");
    if (!app || !agent || !workspace || !user || rest.length > 0) return undefined;
    return [app, agent, workspace, user].every((part) => PART.test(part)) ? { app, agent, workspace, user } : undefined;
  }

  /** Returns a redirect target if scheme, host and port are exactly an app's, without user info and control characters. */
  parseTarget(text: string): { url: URL; name: AppName } | undefined {
    // A text that a URL parser would correct is not the URL it appears to be.
    if (!/^https?:\/\/[a-z0-9]/i.test(text) || /[\s\\\p{Cc}]/u.test(text) || !URL.canParse(text)) return undefined;
    const url = new URL(text);
    const name = this.parseName(url.host);
    const isExact =
      url.protocol === this.#protocol && url.port === this.#port && `${url.username}${url.password}` === "";
    return name && isExact && text.toLowerCase().startsWith(`${url.protocol}//${url.host}`) ? { url, name } : undefined;
  }

  /** Returns `https://8080--main--dev--ann.apps.example.com`, without a trailing slash. */
  toOrigin(label: string): string {
    return `${this.#protocol}//${label}.${this.#suffix}${this.#port && `:${this.#port}`}`;
  }
}

const DEFAULT_PORT: Record<string, string> = { "http:": "80", "https:": "443" };

/** A path below an app. */
export type AppPath = {
  readonly name: AppName;
  /** `/@ann/dev.main/apps/code`, as requested. */
  readonly prefix: string;
  /** The remaining path: empty, or with its leading slash. */
  readonly rest: string;
};

const APP_PATH = /^(\/@([^/]+)\/([^/]+)\/apps\/([^/]+))(\/.*)?$/;

/** `/@ann/dev`, its settings and builds: workspace pages, not apps. */
const PAGE_PATH = /^\/@[^/]+\/[^/]+(\/settings(\/[^/]+)?|\/builds\/\d+)?$/;

/** Returns whether a path belongs to apps, including malformed ones. */
export const isAppPath = (path: string): boolean => path.startsWith("/@") && !PAGE_PATH.test(path);

/** Parses `/@{user}/{workspace}[.{agent}]/apps/{app}/...`; undefined if it does not have this form. */
export const parseAppPath = (path: string): AppPath | undefined => {
  const [, prefix = "", user = "", label = "", app = "", rest = ""] = APP_PATH.exec(path) ?? [];
  const [workspace = "", agent, ...others] = label.toLowerCase().split(".");
  const name = { user: user.toLowerCase(), workspace, agent, app: app.toLowerCase() };
  const parts = [name.user, workspace, name.app, ...(agent === undefined ? [] : [agent])];
  if (others.length > 0 || !parts.every((part) => /^[a-z0-9_-]+$/.test(part))) return undefined;
  return { name, prefix, rest };
};

/** Returns the port for `8080` or `8080s`; undefined for anything else. Ports below 9 are reserved for the agent. */
export const parsePort = (app: string): { port: number; tls: boolean } | undefined => {
  const [, digits, secure] = /^([1-9]\d{0,4})(s?)$/.exec(app) ?? [];
  const port = Number(digits ?? 0);
  return port >= 9 && port <= 65_535 ? { port, tls: secure === "s" } : undefined;
};
