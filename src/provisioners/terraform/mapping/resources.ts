// Derives the resources of a workspace and their agents from the graph and the instances of a plan or state (facts/terraform 3.1 to 3.15).
// Pure.
import { getModule } from "./address.ts";
import { type Belongings, toAgent } from "./agent.ts";
import { blocks, flag, type Instance, number, text } from "./document.ts";
import type { Graph } from "./graph.ts";
import { type MappedAgent, type MappedResource, MappingError } from "./mapped.ts";
import { Places } from "./places.ts";

/** Parts of other resources, which are not resources themselves. */
const PARTS = new Set(["coder_agent", "coder_agent_instance", "coder_app", "coder_script", "coder_metadata"]);

const SIZES: Readonly<Record<string, string>> = {
  google_compute_instance: "machine_type",
  aws_instance: "instance_type",
  aws_spot_instance_request: "instance_type",
  azurerm_linux_virtual_machine: "size",
  azurerm_windows_virtual_machine: "size",
};

export type MappedResources = {
  readonly resources: readonly MappedResource[];
  readonly daily_cost: number;
  /** Messages about what was ignored. */
  readonly warnings: readonly string[];
};

/** Throws MappingError for duplicate names and duplicate metadata. */
export const mapResources = (instances: readonly Instance[], graph: Graph): MappedResources => {
  const managed = instances.filter(({ mode }) => mode === "managed");
  const ofType = (type: string): Instance[] => managed.filter((one) => one.type === type);
  const places = new Places(graph, managed);
  const warnings: string[] = [];
  const belongings = sortOut(managed, places, warnings);
  const agents = new Map<string, MappedAgent[]>();
  for (const agent of ofType("coder_agent")) {
    const machine = places.machineOf(agent);
    if (!machine) continue;
    const list = agents.get(machine.address) ?? [];
    agents.set(machine.address, [...list, toAgent(agent, machine, belongings(agent))]);
  }
  const shown = [...agents.values()].flat();
  once(
    shown.map(({ name }) => name.toLowerCase()),
    "agent",
  );
  once(
    shown.flatMap(({ apps }) => apps.map(({ slug }) => slug)),
    "app",
  );
  const metadata = new Map<string, Instance>();
  for (const one of ofType("coder_metadata")) {
    const subject = places.subjectOf(one, (address) => metadata.has(address));
    if (!subject) continue;
    if (metadata.has(subject.address)) throw new MappingError(`${subject.address} has two coder_metadata.`);
    metadata.set(subject.address, one);
  }
  return {
    resources: managed
      .filter(({ type }) => !PARTS.has(type))
      .map((one) => toResource(one, metadata.get(one.address), agents.get(one.address) ?? [])),
    daily_cost: ofType("coder_metadata").reduce((sum, { values }) => sum + number(values.daily_cost), 0),
    warnings,
  };
};

/** Assigns parts to agents; parts of a development container's agent are listed in `warnings`. */
const sortOut = (
  managed: readonly Instance[],
  places: Places,
  warnings: string[],
): ((agent: Instance) => Belongings) => {
  const owners = new Map<string, Instance[]>();
  for (const one of managed) {
    if (!["coder_app", "coder_script", "coder_env", "coder_devcontainer", "coder_agent_instance"].includes(one.type))
      continue;
    const owner = places.ownerOf(one);
    if (owner?.type === "coder_devcontainer")
      warnings.push(`${one.address} belongs to the agent of a development container; that agent declares its own.`);
    else if (owner) owners.set(owner.address, [...(owners.get(owner.address) ?? []), one]);
  }
  return (agent) => {
    const mine = owners.get(agent.address) ?? [];
    const of = (type: string): Instance[] => mine.filter((one) => one.type === type);
    return {
      apps: of("coder_app"),
      scripts: of("coder_script"),
      env: of("coder_env"),
      devcontainers: of("coder_devcontainer"),
      instance: of("coder_agent_instance")[0],
    };
  };
};

const toResource = (one: Instance, metadata: Instance | undefined, agents: readonly MappedAgent[]): MappedResource => ({
  type: one.type,
  name: one.name,
  module_path: getModule(one.address),
  hide: flag(metadata?.values.hide),
  icon: text(metadata?.values.icon),
  daily_cost: number(metadata?.values.daily_cost),
  instance_type: text(one.values[SIZES[one.type] ?? ""]),
  metadata: blocks(metadata?.values.item)
    // A state marks items without a value; a plan does not know them yet (facts/terraform 3.14).
    .filter(({ is_null }) => is_null !== true)
    .map(({ key, value, sensitive }) => ({ key: text(key), value: text(value), sensitive: flag(sensitive) })),
  agents: agents.toSorted((a, b) => a.order - b.order || (a.name < b.name ? -1 : 1)),
});

const once = (names: readonly string[], what: string): void => {
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined)
    throw new MappingError(`There are two ${what}s named ${twice}; names must differ in the whole template.`);
};
