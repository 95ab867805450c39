// Finds the agent to which an app, script or variable belongs, and the resource of an agent or of metadata (facts/terraform 3.4 to 3.6,
// 3.14). The graph has only labels. Of the instances with a label, the one with the same module instance and index is chosen, else the
// first one. Pure.
import { getIndex, getModule, toLabel } from "./address.ts";
import { type Instance, toText } from "./document.ts";
import type { Graph } from "./graph.ts";

export class InstanceRelations {
  readonly #graph: Graph;
  readonly #byLabel: ReadonlyMap<string, readonly Instance[]>;
  readonly #byModule = new Map<readonly Instance[], ReadonlyMap<string, readonly Instance[]>>();

  constructor(graph: Graph, instances: readonly Instance[]) {
    this.#graph = graph;
    this.#byLabel = Map.groupBy(
      instances.filter(({ mode }) => mode === "managed"),
      ({ address }) => toLabel(address),
    );
  }

  /** Returns the resource that an agent runs on; undefined for an agent without one, which is omitted. */
  findMachine(agent: Instance): Instance | undefined {
    return this.#findInstance(
      this.#graph.findNearestDependent(toLabel(agent.address), (label) => this.#hasType(label, canHaveAgents)),
      agent,
    );
  }

  /**
   * Returns the resource of a coder_metadata: the resource with the ID that the metadata names, else the nearest dependency. A plan has no
   * IDs, so each of several metadata gets an instance that no other one has.
   */
  findSubject(metadata: Instance, isTaken: (address: string) => boolean): Instance | undefined {
    const label = this.#graph.findNearestDependency(toLabel(metadata.address), (one) =>
      this.#hasType(one, (type) => !type.startsWith("coder_")),
    );
    const resourceId = toText(metadata.values.resource_id);
    const sameId = resourceId && this.#byLabel.get(label ?? "")?.find(({ values }) => values.id === resourceId);
    const near = sameId || this.#findInstance(label, metadata);
    if (resourceId !== "" || !near || !isTaken(near.address)) return near;
    return this.#byLabel.get(label ?? "")?.find(({ address }) => !isTaken(address)) ?? near;
  }

  /** Returns the agent, or the devcontainer with its sub-agent, that an app, script, variable or devcontainer belongs to. */
  findOwner(one: Instance): Instance | undefined {
    const id = toText(one.values.agent_id);
    if (id !== "") {
      for (const list of this.#byLabel.values()) {
        const found = list.find(
          ({ type, values }) =>
            (type === "coder_agent" && values.id === id) ||
            (type === "coder_devcontainer" && values.subagent_id === id),
        );
        if (found) return found;
      }
    }
    const owners = one.type === "coder_devcontainer" ? ["coder_agent"] : ["coder_agent", "coder_devcontainer"];
    const label = this.#graph.findNearestDependency(toLabel(one.address), (found) =>
      this.#hasType(found, (type) => owners.includes(type)),
    );
    return this.#findInstance(label, one);
  }

  /** Groups a label's instances by module, once, because there may be thousands. */
  #groupByModule(instances: readonly Instance[]): ReadonlyMap<string, readonly Instance[]> {
    const groups = this.#byModule.get(instances) ?? Map.groupBy(instances, ({ address }) => getModule(address));
    this.#byModule.set(instances, groups);
    return groups;
  }

  #hasType(label: string, matches: (type: string) => boolean): boolean {
    const type = this.#byLabel.get(label)?.[0]?.type;
    return type !== undefined && matches(type);
  }

  #findInstance(label: string | undefined, reference: Instance): Instance | undefined {
    const candidates = label === undefined ? [] : (this.#byLabel.get(label) ?? []);
    const inModule = this.#groupByModule(candidates).get(getModule(reference.address)) ?? candidates;
    const index = getIndex(reference.address);
    return inModule.find(({ address }) => getIndex(address) === index) ?? inModule[0];
  }
}

const canHaveAgents = (type: string): boolean => !type.startsWith("coder_") || type === "coder_external_agent";
