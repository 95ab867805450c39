// The row about several active nodes: three (the product) and one (the baseline) on one PostgreSQL, which share all cores with the agents
// and people of size/agents.ts. Each request goes to the next node, for people of several shards.
import { productFigure, productRatio, type Row } from "../row.ts";
import { openWorld } from "../size/world.ts";

const AGENTS = 48;
const PEOPLE = 12;
const NODE_COUNT = 3;
/** Numbers of callers that send requests as fast as possible, all at the same time. */
const CALLERS = { lines: 24, turn: 6, list: 6 } as const;
const WARM_UP_S = 3;

export const threeNodes: Row = {
  name: "nodes",
  title:
    "Three active nodes (product) and one (floor) on one PostgreSQL: concurrent batches of lines, turns of chats and lists",
  sides: ["floor", "product"],
  async measure(bench, side) {
    await using world = await openWorld(AGENTS, { people: PEOPLE, nodes: side === "product" ? NODE_COUNT : 1 });
    await world.measure({ seconds: WARM_UP_S, per_s: {}, callers: CALLERS });
    const { result, seconds, groups, node_ms, database_ms } = await world.measure({
      seconds: bench.seconds,
      per_s: {},
      callers: CALLERS,
    });
    const counts = { lines: 0, turn: 0, list: 0, ...result.done };
    return {
      batches_per_s: counts.lines / seconds,
      turns_per_s: counts.turn / seconds,
      lists_per_s: counts.list / seconds,
      commits_per_s: groups / seconds,
      node_cores: node_ms / 1000 / seconds,
      database_cores: database_ms / 1000 / seconds,
      memory_mb: world.memory(),
    };
  },
  figures: {
    batches_per_s: "batches of lines/s",
    turns_per_s: "turns/s",
    lists_per_s: "lists/s",
    commits_per_s: "commits/s",
    node_cores: "cores of all nodes",
    database_cores: "cores of the database",
    memory_mb: "memory of all nodes, MB",
  },
  verdicts: [
    ...(["batches_per_s", "turns_per_s", "lists_per_s"] as const).map((figure) => ({
      what: `${figure.replace("_per_s", "/s")}, three nodes / one, on the same cores`,
      target: "none",
      value: productRatio(figure),
      bound: 0,
      better: "higher" as const,
      unit: "ratio" as const,
    })),
    {
      what: "memory of three nodes",
      target: "none",
      value: productFigure("memory_mb"),
      bound: Number.POSITIVE_INFINITY,
      better: "lower",
      unit: "MB",
    },
  ],
};
