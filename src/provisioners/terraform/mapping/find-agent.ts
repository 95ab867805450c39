// Finds the agent to which an app, script or variable belongs, and the resource to which an agent or metadata belongs (facts/terraform 3.4
// to 3.6, 3.14). The graph has only labels. If several instances have the label, the one with the same module instance and index is chosen,
// else the first one. Pure.
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

  /** Returns the resource on which an agent runs; undefined for an agent without a resource. */
  findMachine(agent: Instance): Instance | undefined {
    return this.#findInstance(
      this.#graph.findNearestDependent(toLabel(agent.address), (label) => this.#hasType(label, canHaveAgents)),
      agent,
    );
  }

  /**
   * Returns the resource of a coder_metadata: the resource with the ID that the metadata names, else the nearest dependency. A plan has no
   * IDs, so if several metadata have the same label, each gets a different instance.
   */
  findSubject(metadata: Instance, isTaken: (address: string) => boolean): Instance | undefined {
    const label = this.#graph.findNearestDependency(toLabel(metadata.address), (one) =>
      this.#hasType(one, (type) => !type.startsWith("coder_")),
    );
    const resourceId = toText(metadata.values.resource_id);
    const candidates = this.#byLabel.get(label ?? "");
    const sameId = resourceId && candidates?.find(({ values }) => values.id === resourceId);
    const nearest = sameId || this.#findInstance(label, metadata);
    if (resourceId !== "" || !nearest || !isTaken(nearest.address)) return nearest;
    return candidates?.find(({ address }) => !isTaken(address)) ?? nearest;
  }

  /**
   * Returns the agent that an app, script, variable or devcontainer belongs to. If that is the sub-agent of a devcontainer, returns the
   * devcontainer.
   */
  findOwner(belonging: Instance): Instance | undefined {
    const agentId = toText(belonging.values.agent_id);
    if (agentId !== "") {
      for (const instances of this.#byLabel.values()) {
        const found = instances.find(
          ({ type, values }) =>
            (type === "coder_agent" && values.id === agentId) ||
            (type === "coder_devcontainer" && values.subagent_id === agentId),
        );
        if (found) return found;
      }
    }
    const ownerTypes = ["coder_agent", ...(belonging.type === "coder_devcontainer" ? [] : ["coder_devcontainer"])];
    const label = this.#graph.findNearestDependency(toLabel(belonging.address), (other) =>
      this.#hasType(other, (type) => ownerTypes.includes(type)),
    );
    return this.#findInstance(label, belonging);
  }

  /** Groups a label's instances by module. Remembers the result, because there may be thousands of instances. */
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
