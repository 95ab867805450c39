// A Docker Engine for one test, which may kill it. `.ci/docker-engine` starts it with the test images.
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { needs } from "../needs.ts";
import { tempDirectory } from "../server.ts";
import { until } from "../until.ts";

const SCRIPT = fileURLToPath(new URL("../../../.ci/docker-engine", import.meta.url));

export class OwnEngine implements AsyncDisposable {
  readonly #temp = tempDirectory();
  readonly #options: readonly string[];
  readonly folder = join(this.#temp.path, "engine");
  readonly socket = join(this.folder, "docker.sock");
  readonly #pid = join(this.folder, "engine.pid");

  private constructor(options: readonly string[]) {
    this.#options = options;
  }

  /** `options`: the engine's, such as --live-restore. */
  static async start(...options: string[]): Promise<OwnEngine> {
    const engine = new OwnEngine(options);
    await engine.start();
    return engine;
  }

  /** Starts the engine, for the first time or after a kill. */
  async start(): Promise<void> {
    rmSync(this.#pid, { force: true });
    // The containerd of the killed engine may still appear to be running until the system has reaped it.
    const file = join(this.folder, "exec", "containerd", "containerd.pid");
    const formerPid = existsSync(file) ? readFileSync(file, "utf8") : "none";
    await until(() => !existsSync(`/proc/${formerPid}`), { what: "the former engine to end" });
    // The engine gets a network namespace: it creates and removes bridges and firewall rules, which would conflict with another engine on
    // the machine.
    const child = Bun.spawn(["unshare", "--net", SCRIPT, "start", this.folder, ...this.#options], {
      stdout: "ignore",
      stderr: "pipe",
    });
    if ((await child.exited) !== 0)
      throw new Error(`the engine does not start: ${await new Response(child.stderr).text()}`);
  }

  /** Kills the engine like `kill -9`; its children keep running. */
  kill(): void {
    process.kill(Number(readFileSync(this.#pid, "utf8")), "SIGKILL");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Bun.spawn([SCRIPT, "stop", this.folder]).exited;
    this.#temp[Symbol.dispose]();
  }
}

/** True if this machine can start a separate engine. */
export const canOwnEngine =
  needs.root.found && Bun.which("dockerd", { PATH: `${process.env.PATH ?? ""}:/usr/sbin` }) !== null;
