// Finds the agent that something belongs to, and the resource of an agent or of metadata (facts/terraform 3.4 to 3.6, 3.14). The graph
// knows only labels; among the instances of a label, the one with the same module instance and index is chosen, else the first. Pure.
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
      this.#graph.findNearestUser(toLabel(agent.address), (label) => this.#isA(label, canCarryAgents)),
      agent,
    );
  }

  /**
   * Returns the resource of a coder_metadata: the one with the ID it names, else the nearest dependency. A plan has no IDs, so with several
   * instances each metadata gets one that no other has taken.
   */
  findSubject(metadata: Instance, isTaken: (address: string) => boolean): Instance | undefined {
    const label = this.#graph.findNearestNeeded(toLabel(metadata.address), (one) =>
      this.#isA(one, (type) => !type.startsWith("coder_")),
    );
    const named = toText(metadata.values.resource_id);
    const exact = named && this.#byLabel.get(label ?? "")?.find(({ values }) => values.id === named);
    const near = exact || this.#findInstance(label, metadata);
    if (named !== "" || !near || !isTaken(near.address)) return near;
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
    const label = this.#graph.findNearestNeeded(toLabel(one.address), (found) =>
      this.#isA(found, (type) => owners.includes(type)),
    );
    return this.#findInstance(label, one);
  }

  /** Groups a label's instances by module, once, because there may be thousands. */
  #groupByModule(found: readonly Instance[]): ReadonlyMap<string, readonly Instance[]> {
    const known = this.#byModule.get(found) ?? Map.groupBy(found, ({ address }) => getModule(address));
    this.#byModule.set(found, known);
    return known;
  }

  #isA(label: string, fits: (type: string) => boolean): boolean {
    const type = this.#byLabel.get(label)?.[0]?.type;
    return type !== undefined && fits(type);
  }

  #findInstance(label: string | undefined, reference: Instance): Instance | undefined {
    const found = label === undefined ? [] : (this.#byLabel.get(label) ?? []);
    const near = this.#groupByModule(found).get(getModule(reference.address)) ?? found;
    const index = getIndex(reference.address);
    return near.find(({ address }) => getIndex(address) === index) ?? near[0];
  }
}

const canCarryAgents = (type: string): boolean => !type.startsWith("coder_") || type === "coder_external_agent";
