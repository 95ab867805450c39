// The real registry from Debian's package docker-registry, on a port of this machine, with one user who may push and pull.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { needs } from "../needs.ts";
import { tempDirectory } from "../server.ts";
import { until } from "../until.ts";

export const REGISTRY_LOGIN = { user: "slipway", password: "open-harbour-77" } as const;

export class GenuineRegistry implements AsyncDisposable {
  readonly host: string;
  readonly #folder: ReturnType<typeof tempDirectory>;
  #child: Bun.Subprocess | undefined;

  private constructor(port: number, folder: ReturnType<typeof tempDirectory>) {
    this.host = `127.0.0.1:${port}`;
    this.#folder = folder;
  }

  static async start(): Promise<GenuineRegistry> {
    const probe = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
    const { port = 0 } = probe;
    await probe.stop(true);
    const folder = tempDirectory();
    const registry = new GenuineRegistry(port, folder);
    mkdirSync(join(folder.path, "data"));
    const hash = await Bun.password.hash(REGISTRY_LOGIN.password, { algorithm: "bcrypt", cost: 4 });
    // htpasswd names the same format "2y".
    writeFileSync(join(folder.path, "htpasswd"), `${REGISTRY_LOGIN.user}:${hash.replace(/^\$2b\$/, "$2y$")}\n`);
    const config = {
      version: 0.1,
      log: { level: "error" },
      storage: { filesystem: { rootdirectory: join(folder.path, "data") } },
      http: { addr: registry.host },
      auth: { htpasswd: { realm: "tests", path: join(folder.path, "htpasswd") } },
    };
    writeFileSync(join(folder.path, "config.yml"), JSON.stringify(config));
    await registry.run();
    return registry;
  }

  /** Starts the registry, or restarts it with the same data. */
  async run(): Promise<void> {
    const config = join(this.#folder.path, "config.yml");
    const command = [needs.registry.file, "serve", config];
    this.#child = Bun.spawn(command, { stdout: "ignore", stderr: "ignore" });
    await until(async () => (await this.#get("/v2/").catch(() => undefined))?.ok === true);
  }

  async stop(): Promise<void> {
    this.#child?.kill();
    await this.#child?.exited;
    this.#child = undefined;
  }

  /** Returns the tags of a name. */
  async tags(name: string): Promise<readonly string[]> {
    const answer = await this.#get(`/v2/${name}/tags/list`);
    return answer.ok ? (((await answer.json()) as { tags: string[] | null }).tags ?? []) : [];
  }

  #get(path: string): Promise<Response> {
    const { user, password } = REGISTRY_LOGIN;
    const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
    return fetch(`http://${this.host}${path}`, { headers: { authorization } });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    this.#folder[Symbol.dispose]();
  }
}
