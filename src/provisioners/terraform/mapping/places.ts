// Which agent something belongs to, and which resource an agent or metadata hangs on (facts/terraform 3.4 to 3.6, 3.14). The graph
// knows labels only; among the instances of a label the one of the same module instance and index is taken, else the first. Pure.
import { getIndex, getModule, toLabel } from "./address.ts";
import { type Instance, text } from "./document.ts";
import type { Graph } from "./graph.ts";

export class Places {
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

  /** What an agent runs on; undefined for one without a machine, which is left out. */
  machineOf(agent: Instance): Instance | undefined {
    return this.#instance(
      this.#graph.nearestUser(toLabel(agent.address), (label) => this.#isA(label, mayCarryAgents)),
      agent,
    );
  }

  /**
   * What a coder_metadata is about: the resource whose id it names, else the nearest that it refers to. Of several instances a plan knows no ids:
   * there each is about one that no other is about yet.
   */
  subjectOf(metadata: Instance, isTaken: (address: string) => boolean): Instance | undefined {
    const label = this.#graph.nearestNeeded(toLabel(metadata.address), (one) =>
      this.#isA(one, (type) => !type.startsWith("coder_")),
    );
    const named = text(metadata.values.resource_id);
    const exact = named && this.#byLabel.get(label ?? "")?.find(({ values }) => values.id === named);
    const near = exact || this.#instance(label, metadata);
    if (named !== "" || !near || !isTaken(near.address)) return near;
    return this.#byLabel.get(label ?? "")?.find(({ address }) => !isTaken(address)) ?? near;
  }

  /** The agent, or the devcontainer whose sub-agent it is, that an app, script, variable or devcontainer belongs to. */
  ownerOf(one: Instance): Instance | undefined {
    const id = text(one.values.agent_id);
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
    const label = this.#graph.nearestNeeded(toLabel(one.address), (found) =>
      this.#isA(found, (type) => owners.includes(type)),
    );
    return this.#instance(label, one);
  }

  /** The instances of a label by their module: looked for once, because there may be thousands. */
  #groupByModule(found: readonly Instance[]): ReadonlyMap<string, readonly Instance[]> {
    const known = this.#byModule.get(found) ?? Map.groupBy(found, ({ address }) => getModule(address));
    this.#byModule.set(found, known);
    return known;
  }

  #isA(label: string, fits: (type: string) => boolean): boolean {
    const type = this.#byLabel.get(label)?.[0]?.type;
    return type !== undefined && fits(type);
  }

  #instance(label: string | undefined, beside: Instance): Instance | undefined {
    const found = label === undefined ? [] : (this.#byLabel.get(label) ?? []);
    const near = this.#groupByModule(found).get(getModule(beside.address)) ?? found;
    const index = getIndex(beside.address);
    return near.find(({ address }) => getIndex(address) === index) ?? near[0];
  }
}

const mayCarryAgents = (type: string): boolean => !type.startsWith("coder_") || type === "coder_external_agent";
