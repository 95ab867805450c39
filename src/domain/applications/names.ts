// How apps and ports are named: one label below the wildcard host, or a path below the access URL (rules AX-1, AX-2). Pure. A host that
// is not exactly of this form is no app's, so that nobody is ever sent, with a key, to a host that only looks like one.
import { isLoopback } from "#base/config.ts";
import { type AppName, formatLabel, PART } from "#base/links/app-label.ts";
import { hostName } from "#base/network/host-name.ts";

const HOST = /^([a-z0-9-]{1,63})\.([a-z0-9._-]+?)(?::(\d{1,5}))?$/;

/** Names that browsers resolve to the machine they run on. */
const OWN_MACHINE = "apps.localhost";

type Deps = {
  readonly config: { readonly wildcard_access_url?: string | undefined };
  readonly accessUrl: URL;
};

/**
 * Returns the hosts of apps: those of the setting, else names below `apps.localhost` where the server is reached by a loopback name without
 * TLS. `host` is the Host header of a request: a forwarded port may have another number than the server's own, and a request by any other
 * name has no such hosts.
 */
export const appHosts = ({ config, accessUrl }: Deps, host: string = accessUrl.host): AppHosts => {
  const { wildcard_access_url } = config;
  if (wildcard_access_url !== undefined) return new AppHosts(wildcard_access_url, accessUrl);
  const [, name = "", port = "80"] = /^(.+?)(?::(\d{1,5}))?$/.exec(host) ?? [];
  const isOwnMachine = accessUrl.protocol === "http:" && isLoopback(accessUrl.hostname) && isLoopback(name);
  return new AppHosts(isOwnMachine ? `*.${OWN_MACHINE}:${port}` : undefined, accessUrl);
};

/**
 * Returns the origin where a person begins to sign in to an app. On a machine of one's own people use `localhost` and `127.0.0.1` alike,
 * and each has its own cookies: the one that is not the access URL is asked first and sends on to the other.
 */
export const firstSignIn = (
  { config, accessUrl }: Deps & { readonly config: { readonly allowed_hosts?: readonly string[] | undefined } },
  host: string,
): string => {
  if (!appHosts({ config, accessUrl }, host).isOwnMachine) return accessUrl.origin;
  const other = accessUrl.hostname === "localhost" ? "127.0.0.1" : "localhost";
  const name = (config.allowed_hosts ?? [other]).includes(other) ? other : accessUrl.hostname;
  return `http://${name}${toPort(host)}`;
};

/** Returns the origin of the access URL at the port a request came to, where someone may be signed in who is not at its host. */
export const nextSignIn = (deps: Deps, host: string): string | undefined => {
  const isThere = hostName(host) === deps.accessUrl.hostname;
  return isThere || !appHosts(deps, host).isOwnMachine ? undefined : `http://${deps.accessUrl.hostname}${toPort(host)}`;
};

const toPort = (host: string): string => /:\d{1,5}$/.exec(host)?.[0] ?? "";

export class AppHosts {
  readonly #suffix: string;
  readonly #port: string;
  readonly #protocol: string;

  /** `wildcard` is the setting; without a port it has that of the access URL. */
  constructor(wildcard: string | undefined, accessUrl: URL) {
    const [name = "", port = accessUrl.port] = (wildcard ?? "").slice(2).split(":");
    this.#suffix = name;
    this.#protocol = accessUrl.protocol;
    this.#port = port === DEFAULT_PORT[accessUrl.protocol] ? "" : port;
  }

  /** `*.apps.example.com:8443`; empty when none exists. */
  get wildcard(): string {
    return this.#suffix === "" ? "" : `*.${this.#suffix}${this.#port && `:${this.#port}`}`;
  }

  /** True where the hosts are names of the machine that the browser runs on. */
  get isOwnMachine(): boolean {
    return this.#suffix === OWN_MACHINE;
  }

  /** True where apps have hosts of their own. */
  get exist(): boolean {
    return this.#suffix !== "";
  }

  /** What an Origin header names, when it is exactly an app's: another port may be another program's. */
  nameOfOrigin(origin: string): AppName | undefined {
    if (!URL.canParse(origin)) return undefined;
    const name = this.nameIn(new URL(origin).host);
    return name && origin === this.originOf(formatLabel(name)) ? name : undefined;
  }

  /** What a Host header names. Its port does not matter: a proxy in front may have dropped it. */
  nameIn(host: string): AppName | undefined {
    const [, label, suffix] = HOST.exec(host.toLowerCase()) ?? [];
    if (label === undefined || this.#suffix === "" || suffix !== this.#suffix) return undefined;
    const [app, agent, workspace, user, ...rest] = label.split("--");
    if (!app || !agent || !workspace || !user || rest.length > 0) return undefined;
    return [app, agent, workspace, user].every((part) => PART.test(part)) ? { app, agent, workspace, user } : undefined;
  }

  /** The URL someone wants to be sent to, when it is exactly an app's: scheme, host and port; no user part, no control signs. */
  target(text: string): { url: URL; name: AppName } | undefined {
    // What a URL parser would repair is not the URL it was shown to be.
    if (!/^https?:\/\/[a-z0-9]/i.test(text) || /[\s\\\p{Cc}]/u.test(text) || !URL.canParse(text)) return undefined;
    const url = new URL(text);
    const name = this.nameIn(url.host);
    const isExact =
      url.protocol === this.#protocol && url.port === this.#port && `${url.username}${url.password}` === "";
    return name && isExact && text.toLowerCase().startsWith(`${url.protocol}//${url.host}`) ? { url, name } : undefined;
  }

  /** `https://8080--main--dev--ann.apps.example.com`, without a slash behind it. */
  originOf(label: string): string {
    return `${this.#protocol}//${label}.${this.#suffix}${this.#port && `:${this.#port}`}`;
  }
}

const DEFAULT_PORT: Record<string, string> = { "http:": "80", "https:": "443" };

/** A request for something below an app's path. */
export type AppPath = {
  readonly name: AppName;
  /** `/@ann/dev.main/apps/code`, as it was asked for. */
  readonly prefix: string;
  /** The rest: empty, or with its slash. */
  readonly rest: string;
};

const PATH = /^(\/@([^/]+)\/([^/]+)\/apps\/([^/]+))(\/.*)?$/;

/** `/@ann/dev`, its settings and builds: pages of a workspace, which are no apps. */
const PAGE = /^\/@[^/]+\/[^/]+(\/settings(\/[^/]+)?|\/builds\/\d+)?$/;

/** True for every path that belongs to apps, also malformed ones. */
export const isAppPath = (path: string): boolean => path.startsWith("/@") && !PAGE.test(path);

/** Reads `/@{user}/{workspace}[.{agent}]/apps/{app}/...`; undefined when it is not of that form. */
export const appPath = (path: string): AppPath | undefined => {
  const [, prefix = "", user = "", place = "", app = "", rest = ""] = PATH.exec(path) ?? [];
  const [workspace = "", agent, ...others] = place.toLowerCase().split(".");
  const name = { user: user.toLowerCase(), workspace, agent, app: app.toLowerCase() };
  const parts = [name.user, workspace, name.app, ...(agent === undefined ? [] : [agent])];
  if (others.length > 0 || !parts.every((part) => /^[a-z0-9_-]+$/.test(part))) return undefined;
  return { name, prefix, rest };
};

/** The port that `8080` or `8080s` stands for; undefined for anything else. Below 9 are the agent's own. */
export const portIn = (app: string): { port: number; tls: boolean } | undefined => {
  const [, digits, secure] = /^([1-9]\d{0,4})(s?)$/.exec(app) ?? [];
  const port = Number(digits ?? 0);
  return port >= 9 && port <= 65_535 ? { port, tls: secure === "s" } : undefined;
};
