// Workspaces of the provisioner `local`, with the real daemon, whose script counts until it is stopped: no matter how often the server
// dies, every number must be stored once and in order.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { until } from "#test/support/until.ts";
import { listStoredLines } from "./oracle/log-lines.ts";
import type { ServerSlot } from "./server.ts";
import { makeTemplate, makeWorkspace, type World, waitForBuild } from "./server-world.ts";

const SCRIPT = `i=0
while [ ! -e "$HOME/enough" ]; do
  echo "count $i"
  i=$((i + 1))
  sleep 0.02
done
echo "counted $i"
`;

export class CountingDaemons {
  readonly #place: ServerSlot;
  readonly #world: World;
  readonly #workspaces: Workspace[];
  /** Lines of all counters after `finish`. */
  lines = 0;

  private constructor(place: ServerSlot, world: World, workspaces: Workspace[]) {
    this.#place = place;
    this.#world = world;
    this.#workspaces = workspaces;
  }

  /** Starts `count` workspaces, and waits until each has printed its first number. */
  static async start(place: ServerSlot, world: World, count: number): Promise<CountingDaemons> {
    const agents = [{ name: "main", scripts: [{ display_name: "Counter", run_on_start: true, script: SCRIPT }] }];
    const template = await makeTemplate(world, "counter", {
      provisioner: "local",
      resources: [{ name: "one", agents }],
    });
    const names = Array.from({ length: count }, (_, i) => `counter-${i}`);
    const workspaces = await Promise.all(names.map((name) => makeWorkspace(world.admin, name, template)));
    const created = new CountingDaemons(place, world, workspaces);
    for (const workspace of workspaces)
      await until(async () => (await created.#listCounterLines(workspace)).length > 0);
    return created;
  }

  /** Lets the scripts end and returns the problems with their stored lines. */
  async finish(): Promise<string[]> {
    const problems: string[] = [];
    for (const workspace of this.#workspaces) {
      writeFileSync(join(this.#place.directory, "workspaces", workspace.id, "home", "enough"), "");
      await until(async () => (await this.#listCounterLines(workspace)).at(-1)?.output.startsWith("counted") ?? false);
      const outputs = (await this.#listCounterLines(workspace)).map(({ output }) => output);
      this.lines += outputs.length;
      const lastIndex = outputs.length - 1;
      const wrongIndex = outputs.findIndex((output, i) => output !== (i === lastIndex ? `counted ${i}` : `count ${i}`));
      if (wrongIndex >= 0)
        problems.push(`${workspace.name}: line ${wrongIndex} of the daemon's script is "${outputs[wrongIndex]}"`);
      const lossNotice = outputs.find((output) => output.startsWith("[slipway:"));
      if (lossNotice) problems.push(`${workspace.name}: ${lossNotice}`);
    }
    return problems;
  }

  /** Deletes the workspaces, so that no process is left. */
  async remove(): Promise<void> {
    const { admin } = this.#world;
    for (const { id } of this.#workspaces) {
      const build = await admin.post<{ id: string }>(`/api/v2/workspaces/${id}/builds`, { transition: "delete" });
      await waitForBuild(admin, build.id);
    }
  }

  /** Returns the script's output, without the daemon's own lines. */
  async #listCounterLines(workspace: Workspace): Promise<AgentLog[]> {
    const [agent] = workspace.latest_build.resources.flatMap((resource) => resource.agents ?? []);
    if (!agent) throw new Error(`${workspace.name} has no agent`);
    const source = agent.scripts.find(({ display_name }) => display_name === "Counter")?.log_source_id;
    const lines = await listStoredLines(this.#world.admin, agent.id);
    return lines.filter(({ source_id }) => source_id === source);
  }
}
