// A workspace with a container engine: the fake Docker Engine behind a real daemon, and a program that simulates the `devcontainer` command
// line tool by calling that engine.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { FakeDocker } from "#test/support/docker/fake-docker.ts";
import { type Reachable, startReachableAgent } from "./reach.ts";

export type ContainerWorld = AsyncDisposable & {
  readonly docker: FakeDocker;
  readonly world: Reachable;
  /** Writes a file in the agent's folder. */
  write(path: string, text: string): string;
};

// Simulates `devcontainer up`: prints a line, creates and starts the container, and prints its ID. A file named `fail` makes it fail, one
// named `lifecycle` makes a command in the container fail.
const createCliScript = (docker: FakeDocker): string => `#!${process.execPath}
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
const args = process.argv.slice(2);
const option = (name) => args[args.indexOf(name) + 1];
const [folder, config] = [option("--workspace-folder"), option("--config")];
const unix = ${JSON.stringify(docker.host.replace("unix://", ""))};
const call = (path, body) => fetch("http://docker/v1.47" + path, { unix, method: "POST", body: JSON.stringify(body) });
console.log(JSON.stringify({ type: "text", level: 3, text: "building" }));
const done = (containerId) =>
  console.log(JSON.stringify({ outcome: "success", containerId, remoteUser: "root", remoteWorkspaceFolder: "/workspaces" }));
const lifecycle = join(folder, "lifecycle");
if (args.includes("--skip-post-create")) {
  done(readFileSync(lifecycle, "utf8"));
  process.exit(0);
}
if (args[0] !== "up" || !args.includes("--remove-existing-container") || existsSync(join(folder, "fail"))) {
  console.log(JSON.stringify({ outcome: "error", message: "The image could not be built.", description: "no space left" }));
  process.exit(1);
}
const Labels = { "devcontainer.local_folder": folder, "devcontainer.config_file": config };
const created = await (await call("/containers/create?name=made-" + Math.random(), { Image: "dev:latest", Labels, HostConfig: {} })).json();
await call("/containers/" + created.Id + "/start");
if (existsSync(lifecycle)) {
  writeFileSync(lifecycle, created.Id);
  console.error(JSON.stringify({ type: "start", level: 2, text: "Run: docker run -e KEY=hidden" }));
  console.error(JSON.stringify({ type: "raw", level: 3, text: "\\u001b[31mOOPS-reason\\u001b[0m\\r\\n", channel: "postCreate" }));
  const failed = { outcome: "error", message: "Command failed: exit 7", description: "postCreateCommand failed." };
  console.log(JSON.stringify({ ...failed, containerId: created.Id }));
  process.exit(1);
}
done(created.Id);
`;

export const startContainerWorld = async (): Promise<ContainerWorld> => {
  const folder = mkdtempSync(join(tmpdir(), "slipway-docker-"));
  const docker = new FakeDocker(folder);
  docker.images.set("dev:latest", { architecture: "amd64" });
  const cli = join(folder, "bin", "devcontainer");
  mkdirSync(dirname(cli));
  writeFileSync(cli, createCliScript(docker));
  chmodSync(cli, 0o755);
  const environment_variables = { DOCKER_HOST: docker.host, PATH: `${dirname(cli)}:$PATH` };
  const world = await startReachableAgent({ agent: { environment_variables } });
  return {
    docker,
    world,
    write(path, text) {
      const hostPath = join(world.home, path);
      mkdirSync(dirname(hostPath), { recursive: true });
      writeFileSync(hostPath, text);
      return hostPath;
    },
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]();
      await docker[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
