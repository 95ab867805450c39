// A client for the workspace's Docker Engine, if the workspace has one: finds its address, lists its containers, and performs a few
// operations. Errors contain the engine's messages; calls time out.

import { existsSync } from "node:fs";
import type { Clock } from "#base/clock.ts";
import { readEngineError } from "#base/engine-words.ts";
import { AppError, type ErrorKind } from "#base/errors.ts";
import { trimEnd } from "#base/text/trim.ts";
import type { Container } from "#schema/workspaces/container.ts";
import type { Environment } from "../environment.ts";

const DEFAULT_SOCKET = "/var/run/docker.sock";
const REQUEST_TIMEOUT_MS = 20_000;
const UPLOAD_TIMEOUT_MS = 10 * 60_000;
const STOP_TIMEOUT_S = 10;
const MAX_CONTAINERS = 1_000;
/** The label that groups the containers of a compose project. */
const COMPOSE_PROJECT = "com.docker.compose.project";

/** The address of an engine. `shown`: for error messages; `base` and `socket`: for `fetch`. */
export type EngineAddress = { readonly shown: string; readonly base: string; readonly socket?: string };

/** Returns the address from DOCKER_HOST, else the default socket; undefined if neither exists or the protocol is not supported. */
export const findEngineAddress = (env: Environment): EngineAddress | undefined => {
  const shown = env.DOCKER_HOST || (existsSync(DEFAULT_SOCKET) ? `unix://${DEFAULT_SOCKET}` : "");
  const [, scheme = "", address = ""] = /^([a-z]+):\/\/(.+)$/.exec(shown) ?? [];
  if (scheme === "unix") return { shown, base: "http://docker", socket: address };
  const webUrl = scheme === "tcp" ? `http://${address}` : shown;
  const isWeb = ["tcp", "http", "https"].includes(scheme) && URL.canParse(webUrl);
  return isWeb ? { shown, base: trimEnd(webUrl, "/") } : undefined;
};

type ListedContainer = {
  Id: string;
  Names?: string[] | null;
  Image?: string;
  Created?: number;
  State?: string;
  Status?: string;
  Labels?: Record<string, string> | null;
  Ports?: { IP?: string; PrivatePort?: number; PublicPort?: number; Type?: string }[] | null;
  Mounts?: { Name?: string; Source?: string; Destination?: string }[] | null;
};

export class ContainerEngine {
  readonly address: EngineAddress;
  readonly #clock: Clock;
  #prefix: string | undefined;

  constructor(address: EngineAddress, clock: Clock) {
    this.address = address;
    this.#clock = clock;
  }

  /** Returns all containers, including stopped ones, newest first. */
  async list(): Promise<Container[]> {
    const found = await this.json<ListedContainer[]>("GET", `/containers/json?all=true&limit=${MAX_CONTAINERS}`);
    return found.sort((a, b) => (b.Created ?? 0) - (a.Created ?? 0)).map(toContainer);
  }

  /** Stops a container, and kills it if it does not stop within some seconds. Succeeds if it has already stopped. */
  async stop(id: string): Promise<void> {
    await this.call("POST", `/containers/${encodeURIComponent(id)}/stop?t=${STOP_TIMEOUT_S}`, undefined, [304]);
  }

  /** Removes a container. Succeeds if it no longer exists. */
  async remove(id: string): Promise<void> {
    await this.call("DELETE", `/containers/${encodeURIComponent(id)}?force=true`, undefined, [404]);
  }

  /**
   * Removes a devcontainer. For a service of a compose file, also removes the other services and their networks, as `docker compose down`
   * does. Volumes are kept.
   */
  async removeWhole({ id, labels }: Pick<Container, "id" | "labels">): Promise<void> {
    await this.remove(id);
    const project = labels[COMPOSE_PROJECT];
    if (!project) return;
    const projectContainers = (await this.list()).filter((one) => one.labels[COMPOSE_PROJECT] === project);
    for (const container of projectContainers) await this.remove(container.id);
    const filters = encodeURIComponent(JSON.stringify({ label: [`${COMPOSE_PROJECT}=${project}`] }));
    for (const { Id } of await this.json<{ Id: string }[]>("GET", `/networks?filters=${filters}`))
      await this.call("DELETE", `/networks/${Id}`, undefined, [404]);
  }

  /** Returns the response as JSON. Throws AppError with the engine's message. */
  async json<T>(method: string, path: string, body?: unknown): Promise<T> {
    return (await (await this.call(method, path, body)).json()) as T;
  }

  /** Throws AppError, except for the statuses in `acceptedStatuses`. */
  async call(
    method: string,
    path: string,
    body?: unknown,
    acceptedStatuses: readonly number[] = [],
  ): Promise<Response> {
    const json = { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
    const response = await this.#fetch(method, (await this.prefix()) + path, body === undefined ? {} : json);
    if (response.ok || acceptedStatuses.includes(response.status)) return response;
    throw await readRefusal(response);
  }

  /** Uploads a tar for the engine to unpack, within ten minutes. Throws AppError. */
  async upload(path: string, tar: ReadableStream<Uint8Array>): Promise<void> {
    const request = { body: tar, headers: { "content-type": "application/x-tar" }, timeout_ms: UPLOAD_TIMEOUT_MS };
    const response = await this.#fetch("PUT", (await this.prefix()) + path, request);
    if (!response.ok) throw await readRefusal(response);
    await response.text();
  }

  /** Returns the path prefix with the API version, which the first call determines. */
  async prefix(): Promise<string> {
    this.#prefix ??= await this.#detectPrefix();
    return this.#prefix;
  }

  async #detectPrefix(): Promise<string> {
    const response = await this.#fetch("GET", "/_ping");
    const version = response.headers.get("api-version") ?? "";
    await response.text();
    return /^\d+\.\d+$/.test(version) ? `/v${version}` : "";
  }

  async #fetch(
    method: string,
    path: string,
    { timeout_ms = REQUEST_TIMEOUT_MS, ...request }: EngineRequest = {},
  ): Promise<Response> {
    const { base, socket, shown } = this.address;
    const timeout = new AbortController();
    const timer = this.#clock.after(timeout_ms, () => timeout.abort());
    try {
      return await fetch(base + path, {
        method,
        redirect: "manual",
        signal: timeout.signal,
        ...(socket === undefined ? {} : { unix: socket }),
        ...request,
      } as RequestInit);
    } catch {
      throw new AppError("internal", `The container engine does not answer at ${shown}.`);
    } finally {
      timer.cancel();
    }
  }
}

type EngineRequest = {
  body?: string | ReadableStream<Uint8Array>;
  headers?: Record<string, string>;
  timeout_ms?: number;
};

const readRefusal = async (response: Response): Promise<AppError> =>
  new AppError(
    ERROR_KINDS[response.status] ?? "internal",
    `The container engine refuses: ${await readEngineError(response)}`,
  );

const ERROR_KINDS: Readonly<Record<number, ErrorKind>> = { 400: "invalid", 404: "not_found", 409: "conflict" };

const toContainer = ({
  Id,
  Names,
  Image,
  Created,
  State,
  Status,
  Labels,
  Ports,
  Mounts,
}: ListedContainer): Container => ({
  id: Id,
  name: (Names?.[0] ?? "").replace(/^\//, ""),
  image: Image ?? "",
  created_at: new Date((Created ?? 0) * 1000).toISOString(),
  running: State === "running",
  status: Status || (State ?? ""),
  labels: Labels ?? {},
  volumes: Object.fromEntries(
    (Mounts ?? []).map(({ Name, Source, Destination }) => [Name || Source || "", Destination ?? ""]),
  ),
  ports: (Ports ?? []).map(({ IP, PrivatePort, PublicPort, Type }) => ({
    network: Type ?? "tcp",
    port: PrivatePort ?? 0,
    host_ip: PublicPort ? (IP ?? "") : "",
    host_port: PublicPort ?? 0,
  })),
});
