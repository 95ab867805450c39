// Derives the resources of a workspace and their agents from the graph and the instances of a plan or state (facts/terraform 3.1 to 3.15).
// Pure.
import { getModule } from "./address.ts";
import { type Belongings, toAgent } from "./agent.ts";
import { type Instance, toBlocks, toFlag, toNumber, toText } from "./document.ts";
import { InstanceRelations } from "./find-agent.ts";
import type { Graph } from "./graph.ts";
import { type MappedAgent, type MappedResource, MappingError } from "./mapped.ts";

/** Types that describe other resources and are not shown as resources themselves. */
const PART_TYPES = new Set(["coder_agent", "coder_agent_instance", "coder_app", "coder_script", "coder_metadata"]);

/** The attribute with a cloud machine's size, by resource type. */
const SIZE_ATTRIBUTES: Readonly<Record<string, string>> = {
  google_compute_instance: "machine_type",
  aws_instance: "instance_type",
  aws_spot_instance_request: "instance_type",
  azurerm_linux_virtual_machine: "size",
  azurerm_windows_virtual_machine: "size",
};

export type MappedResources = {
  readonly resources: readonly MappedResource[];
  readonly daily_cost: number;
  /** Messages about ignored parts of the template. */
  readonly warnings: readonly string[];
};

/** Maps the resources with their agents and metadata. Throws MappingError for duplicate names and duplicate metadata. */
export const mapResources = (instances: readonly Instance[], graph: Graph): MappedResources => {
  const managed = instances.filter(({ mode }) => mode === "managed");
  const listOfType = (type: string): Instance[] => managed.filter((instance) => instance.type === type);
  const relations = new InstanceRelations(graph, managed);
  const warnings: string[] = [];
  const getBelongings = groupByAgent(managed, relations, warnings);
  const agents = new Map<string, MappedAgent[]>();
  for (const agent of listOfType("coder_agent")) {
    const machine = relations.findMachine(agent);
    if (!machine) continue;
    const list = agents.get(machine.address) ?? [];
    agents.set(machine.address, [...list, toAgent(agent, machine, getBelongings(agent))]);
  }
  const mappedAgents = [...agents.values()].flat();
  requireUnique(
    mappedAgents.map(({ name }) => name.toLowerCase()),
    "agent",
  );
  requireUnique(
    mappedAgents.flatMap(({ apps }) => apps.map(({ slug }) => slug)),
    "app",
  );
  const metadata = new Map<string, Instance>();
  for (const instance of listOfType("coder_metadata")) {
    const subject = relations.findSubject(instance, (address) => metadata.has(address));
    if (!subject) continue;
    if (metadata.has(subject.address)) throw new MappingError(`${subject.address} has two coder_metadata.`);
    metadata.set(subject.address, instance);
  }
  return {
    resources: managed
      .filter(({ type }) => !PART_TYPES.has(type))
      .map((instance) => toResource(instance, metadata.get(instance.address), agents.get(instance.address) ?? [])),
    daily_cost: listOfType("coder_metadata").reduce((sum, { values }) => sum + toNumber(values.daily_cost), 0),
    warnings,
  };
};

/**
 * Groups apps, scripts and variables by agent, and returns a function that looks up those of an agent. Adds a warning for each app, script
 * or variable of a development container, which is ignored.
 */
const groupByAgent = (
  managed: readonly Instance[],
  relations: InstanceRelations,
  warnings: string[],
): ((agent: Instance) => Belongings) => {
  const owners = new Map<string, Instance[]>();
  for (const instance of managed) {
    if (
      !["coder_app", "coder_script", "coder_env", "coder_devcontainer", "coder_agent_instance"].includes(instance.type)
    )
      continue;
    const owner = relations.findOwner(instance);
    if (owner?.type === "coder_devcontainer")
      warnings.push(
        `${instance.address} belongs to the agent of a development container; that agent declares its own.`,
      );
    else if (owner) owners.set(owner.address, [...(owners.get(owner.address) ?? []), instance]);
  }
  return (agent) => {
    const belongingInstances = owners.get(agent.address) ?? [];
    const listOwn = (type: string): Instance[] => belongingInstances.filter((instance) => instance.type === type);
    return {
      apps: listOwn("coder_app"),
      scripts: listOwn("coder_script"),
      env: listOwn("coder_env"),
      devcontainers: listOwn("coder_devcontainer"),
      instance: listOwn("coder_agent_instance")[0],
    };
  };
};

const toResource = (
  instance: Instance,
  metadata: Instance | undefined,
  agents: readonly MappedAgent[],
): MappedResource => ({
  type: instance.type,
  name: instance.name,
  module_path: getModule(instance.address),
  hide: toFlag(metadata?.values.hide),
  icon: toText(metadata?.values.icon),
  daily_cost: toNumber(metadata?.values.daily_cost),
  instance_type: toText(instance.values[SIZE_ATTRIBUTES[instance.type] ?? ""]),
  metadata: toBlocks(metadata?.values.item)
    // A state marks items without a value with `is_null`; a plan does not know their values yet (facts/terraform 3.14).
    .filter(({ is_null }) => is_null !== true)
    .map(({ key, value, sensitive }) => ({ key: toText(key), value: toText(value), sensitive: toFlag(sensitive) })),
  agents: agents.toSorted((a, b) => a.order - b.order || (a.name < b.name ? -1 : 1)),
});

const requireUnique = (names: readonly string[], kind: string): void => {
  const duplicate = names.find((name, i) => names.indexOf(name) < i);
  if (duplicate !== undefined)
    throw new MappingError(`There are two ${kind}s named ${duplicate}; names must differ in the whole template.`);
};
