// A Docker Engine of a test's own, which it may kill: started by `.ci/docker-engine` with the images of the tests.
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { needs } from "../needs.ts";
import { tempDirectory } from "../server.ts";
import { until } from "../until.ts";

const SCRIPT = fileURLToPath(new URL("../../../.ci/docker-engine", import.meta.url));

export class OwnEngine implements AsyncDisposable {
  readonly #place = tempDirectory();
  readonly #options: readonly string[];
  readonly folder = join(this.#place.path, "engine");
  readonly socket = join(this.folder, "docker.sock");
  readonly #pid = join(this.folder, "engine.pid");

  private constructor(options: readonly string[]) {
    this.#options = options;
  }

  /** `options` are the engine's own, such as --live-restore. */
  static async start(...options: string[]): Promise<OwnEngine> {
    const engine = new OwnEngine(options);
    await engine.start();
    return engine;
  }

  /** Starts it, for the first time or after it was killed. */
  async start(): Promise<void> {
    rmSync(this.#pid, { force: true });
    // What ended with it is taken for one that still runs until the system has forgotten it.
    const file = join(this.folder, "exec", "containerd", "containerd.pid");
    const former = existsSync(file) ? readFileSync(file, "utf8") : "none";
    await until(() => !existsSync(`/proc/${former}`), { what: "the former engine has ended" });
    // In a network namespace of its own: an engine makes and removes bridges and rules of the machine that another engine has.
    const child = Bun.spawn(["unshare", "--net", SCRIPT, "start", this.folder, ...this.#options], {
      stdout: "ignore",
      stderr: "pipe",
    });
    if ((await child.exited) !== 0)
      throw new Error(`the engine does not start: ${await new Response(child.stderr).text()}`);
  }

  /** As `kill -9`; what it had started is left to itself. */
  kill(): void {
    process.kill(Number(readFileSync(this.#pid, "utf8")), "SIGKILL");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Bun.spawn([SCRIPT, "stop", this.folder]).exited;
    this.#place[Symbol.dispose]();
  }
}

/** Whether this machine can start one. */
export const canOwnEngine =
  needs.root.found && Bun.which("dockerd", { PATH: `${process.env.PATH ?? ""}:/usr/sbin` }) !== null;
