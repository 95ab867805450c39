// A fake Docker Engine: a real HTTP server on a Unix socket that implements the needed part of the Engine API, keeps images, containers
// and volumes in memory, and can fail, delay, or run a container's program on request.
import { existsSync } from "node:fs";
import type { Server } from "node:net";
import { join } from "node:path";
import { type FakeExec, listenInFront, runDetached } from "./fake-docker-exec.ts";

export type FakeContainer = {
  id: string;
  name: string;
  body: { Image: string; Env: string[]; Labels: Record<string, string>; Entrypoint?: string[]; Cmd?: string[] } & {
    HostConfig: Record<string, unknown>;
  };
  running: boolean;
  /** Size of the uploaded tar, and the name of the file in it. */
  uploaded: number;
  file: string;
  /** Seconds since 1970. */
  created: number;
  ports?: { IP?: string; PrivatePort: number; PublicPort?: number; Type: string }[];
  mounts?: { Name?: string; Source?: string; Destination: string }[];
};

type Answer = { status: number; message: string };

export class FakeDocker implements AsyncDisposable {
  readonly host: string;
  readonly images = new Map<string, { architecture: string }>();
  readonly containers = new Map<string, FakeContainer>();
  readonly volumes = new Map<string, Record<string, string>>();
  readonly networks = new Map<string, { Labels?: Record<string, string>; Options?: Record<string, string> }>();
  /** The files of all containers, by path: Go's file mode, the size, and the target of a link. */
  readonly files = new Map<string, { mode: number; size: number; linkTarget: string }>();
  /** The architecture of pulled images. */
  architecture = "amd64";
  /** `METHOD /path` of every call, without the version. */
  readonly calls: string[] = [];
  /** The registry tokens that pulls sent. */
  readonly registryTokens: string[] = [];
  /** If it returns an answer for `METHOD /path`, that answer replaces the engine's. */
  refuse: (call: string) => Answer | undefined = () => undefined;
  /** Awaited before a call is answered. */
  hold: (call: string) => Promise<void> | undefined = () => undefined;
  /** Returns the lines of a pull, each sent as a chunk. */
  pull: (image: string) => object[] = () => [{ status: "Pull complete", id: "layer" }];
  /** Called when a container starts and when it ends. */
  onStart: (container: FakeContainer) => void = () => {};
  onEnd: (container: FakeContainer) => void = () => {};
  /** Programs started inside containers. */
  readonly execs = new Map<string, FakeExec>();
  readonly #server: Bun.Server<undefined>;
  readonly #front: Server;
  #nextId = 1;

  constructor(directory: string) {
    const socket = join(directory, "docker.sock");
    if (existsSync(socket)) throw new Error("the socket already exists");
    this.host = `unix://${socket}`;
    const inner = join(directory, "engine.sock");
    this.#front = listenInFront(socket, inner, this.execs);
    this.#server = Bun.serve({
      unix: inner,
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      idleTimeout: 0,
      fetch: (request: Request) => this.#answer(request),
    } as never);
  }

  /** Adds a container created by someone else. */
  put(name: string, options: Partial<Omit<FakeContainer, "name" | "body">> & { labels?: Record<string, string> } = {}) {
    const { labels = {}, ...fields } = options;
    const id = `c${this.#nextId++}`;
    const body = { Image: "dev:latest", Env: [], Labels: labels, HostConfig: {} };
    const container = { id, name, body, running: true, uploaded: 0, file: "", created: nowSeconds(), ...fields };
    this.containers.set(container.id, container);
    return container;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const container of this.containers.values()) if (container.running) this.onEnd(container);
    this.#front.close();
    await this.#server.stop(true);
  }

  /** Resolves once a call with this prefix has arrived. */
  async awaitCall(prefix: string): Promise<void> {
    while (!this.calls.some((call) => call.startsWith(prefix))) {
      await new Promise<void>((resolve) => this.#callWaiters.push(resolve));
    }
  }
  readonly #callWaiters: (() => void)[] = [];

  async #answer(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const path = url.pathname.replace(/^\/v\d+\.\d+\//, "/");
    const call = `${request.method} ${path}`;
    this.calls.push(call);
    for (const notify of this.#callWaiters.splice(0)) notify();
    await this.hold(call);
    const replacement = this.refuse(call);
    if (replacement) return toErrorResponse(replacement.status, replacement.message);
    if (path === "/_ping") return new Response("OK", { headers: { "Api-Version": "1.47" } });
    // A real engine also accepts unversioned paths, but our client must use the negotiated version.
    if (path === url.pathname) return toErrorResponse(400, "the version is missing");
    const [, kind, id = ""] = /^\/(images|containers|volumes|networks|exec)(?:\/(.*))?$/.exec(path) ?? [];
    if (kind === "images") return this.#image(request, decodeURI(id), url.searchParams);
    if (kind === "containers") return this.#container(request, id, url.searchParams);
    if (kind === "exec") return this.#exec(id, url.searchParams);
    if (kind === "networks") return this.#network(request, id, url.searchParams);
    if (kind === "volumes") return this.#volume(request, id, url.searchParams);
    return toErrorResponse(404, "page not found");
  }

  #image(request: Request, id: string, query: URLSearchParams): Response {
    if (id === "create") {
      const auth = Buffer.from(request.headers.get("x-registry-auth") ?? "", "base64").toString();
      if (auth !== "") this.registryTokens.push((JSON.parse(auth) as { registrytoken: string }).registrytoken);
      const separator = query.get("tag")?.startsWith("sha256:") ? "@" : ":";
      const image = `${query.get("fromImage")}${separator}${query.get("tag")}`;
      const lines = this.pull(image);
      if (!lines.some((line) => "error" in line)) this.images.set(image, { architecture: this.architecture });
      return new Response(
        (async function* () {
          for (const line of lines) {
            yield new TextEncoder().encode(`${JSON.stringify(line)}\r\n`);
            await new Promise((resolve) => setImmediate(resolve));
          }
        })() as never,
        { headers: { "content-type": "application/json" } },
      );
    }
    const name = id.replace(/\/json$/, "");
    const found = this.images.get(withTag(name));
    return found ? Response.json({ Architecture: found.architecture }) : toErrorResponse(404, `No such image: ${name}`);
  }

  async #container(request: Request, path: string, query: URLSearchParams): Promise<Response> {
    const [id = "", action = ""] = path.split("/");
    if (id === "json") {
      const found = [...this.containers.values()].filter(({ body }) => matchesFilter(body.Labels, query));
      return Response.json(
        found.map(({ id, name, body, running, created, ports = [], mounts = [] }) => ({
          Id: id,
          Names: [`/${name}`],
          Labels: body.Labels,
          State: running ? "running" : "exited",
          Image: body.Image,
          Created: created,
          Status: running ? "Up 2 minutes" : "Exited (0)",
          Ports: ports,
          Mounts: mounts,
        })),
      );
    }
    if (id === "create") {
      const body = (await request.json()) as FakeContainer["body"];
      const name = query.get("name") ?? "";
      if (!this.images.has(withTag(body.Image))) {
        return toErrorResponse(404, `No such image: ${body.Image}`);
      }
      if ([...this.containers.values()].some((existing) => existing.name === name)) {
        return toErrorResponse(409, `Conflict. The container name "/${name}" is already in use`);
      }
      const container = {
        id: `c${this.#nextId++}`,
        name,
        body,
        running: false,
        uploaded: 0,
        file: "",
        created: nowSeconds(),
      };
      this.containers.set(container.id, container);
      return Response.json({ Id: container.id, Warnings: [] }, { status: 201 });
    }
    const container = this.containers.get(id) ?? [...this.containers.values()].find(({ name }) => name === id);
    if (!container) return toErrorResponse(404, `No such container: ${id}`);
    if (action === "exec") {
      if (!container.running) return toErrorResponse(409, `container ${container.id} is not running`);
      const body = (await request.json()) as FakeExec["body"];
      const exec: FakeExec = { id: `e${this.#nextId++}`, container: container.name, body, exit_code: null };
      this.execs.set(exec.id, exec);
      return Response.json({ Id: exec.id }, { status: 201 });
    }
    if (action === "archive" && request.method === "HEAD")
      return toFileResponse(this.files.get(query.get("path") ?? ""));
    if (action === "archive") return upload(container, request);
    if (action === "start" || action === "stop") {
      const running = action === "start";
      if (container.running === running) return new Response(null, { status: 304 });
      container.running = running;
      if (running) this.onStart(container);
      else this.onEnd(container);
      return new Response(null, { status: 204 });
    }
    if (request.method === "DELETE") {
      if (container.running && query.get("force") !== "true") return toErrorResponse(409, "the container is running");
      if (container.running) this.onEnd(container);
      this.containers.delete(id);
      return new Response(null, { status: 204 });
    }
    return toErrorResponse(404, "page not found");
  }

  async #exec(path: string, query: URLSearchParams): Promise<Response> {
    const [id = "", action] = path.split("/");
    const exec = this.execs.get(id);
    if (!exec) return toErrorResponse(404, `No such exec instance: ${id}`);
    if (action === "json") return Response.json({ ID: id, Running: exec.exit_code === null, ExitCode: exec.exit_code });
    if (action === "start") await runDetached(exec);
    if (action === "resize") exec.child?.terminal?.resize(Number(query.get("w")), Number(query.get("h")));
    return new Response(null, { status: 200 });
  }

  async #network(request: Request, name: string, query: URLSearchParams): Promise<Response> {
    if (name === "create") {
      const { Name, ...body } = (await request.json()) as { Name: string; Labels?: Record<string, string> };
      if (this.networks.has(Name)) return toErrorResponse(409, `network with name ${Name} already exists`);
      this.networks.set(Name, body);
      return Response.json({ Id: Name }, { status: 201 });
    }
    if (request.method === "DELETE") {
      const isUsed = [...this.containers.values()].some(
        ({ running, body }) => running && body.HostConfig.NetworkMode === name,
      );
      if (isUsed) return toErrorResponse(403, `error while removing network: network ${name} has active endpoints`);
      return this.networks.delete(name) ? new Response(null, { status: 204 }) : toErrorResponse(404, "no such network");
    }
    if (name !== "") {
      const found = this.networks.get(name);
      return found ? Response.json({ Name: name, ...found }) : toErrorResponse(404, `network ${name} not found`);
    }
    const found = [...this.networks].filter(([, { Labels }]) => matchesFilter(Labels ?? {}, query));
    return Response.json(found.map(([Name]) => ({ Id: Name, Name })));
  }

  async #volume(request: Request, name: string, query: URLSearchParams): Promise<Response> {
    if (name === "create") {
      const { Name, Labels } = (await request.json()) as { Name: string; Labels: Record<string, string> };
      if (!this.volumes.has(Name)) this.volumes.set(Name, Labels);
      return Response.json({ Name, Labels: this.volumes.get(Name) }, { status: 201 });
    }
    if (request.method === "DELETE") {
      return this.volumes.delete(name) ? new Response(null, { status: 204 }) : toErrorResponse(404, "no such volume");
    }
    const found = [...this.volumes].filter(([, labels]) => matchesFilter(labels, query)).map(([Name]) => ({ Name }));
    return Response.json({ Volumes: found.length > 0 ? found : null, Warnings: null });
  }
}

const nowSeconds = (): number => Math.floor(Date.now() / 1000);

const upload = async (container: FakeContainer, request: Request): Promise<Response> => {
  let firstChunk: Uint8Array | undefined;
  for await (const chunk of request.body ?? []) {
    firstChunk ??= chunk as Uint8Array;
    container.uploaded += (chunk as Uint8Array).length;
  }
  container.file = new TextDecoder().decode(firstChunk?.slice(0, 100)).replace(/\0.*$/s, "");
  return new Response(null, { status: 200 });
};

const toFileResponse = (file: object | undefined): Response =>
  file
    ? new Response(null, { headers: { "X-Docker-Container-Path-Stat": btoa(JSON.stringify(file)) } })
    : toErrorResponse(404, "no such file");

const withTag = (image: string): string => (/[:@][^/]*$/.test(image) ? image : `${image}:latest`);

const toErrorResponse = (status: number, message: string): Response => Response.json({ message }, { status });

const matchesFilter = (labels: Record<string, string> = {}, query: URLSearchParams): boolean => {
  const { label = [] } = JSON.parse(query.get("filters") ?? "{}") as { label?: string[] };
  return label.every((filter) => {
    const equalsIndex = filter.indexOf("=");
    return labels[filter.slice(0, equalsIndex)] === filter.slice(equalsIndex + 1);
  });
};
