// Agents inside agents end with their parents: anyone who hears that an agent has gone hears it of its children, too (rule SA-4).
import { log } from "#base/log.ts";
import { listSubAgents } from "#db/agents/sub-agents.ts";
import type { DomainContext } from "../context.ts";

/** For as long as the server runs. */
export const endWithParents = ({ store, topics }: Pick<DomainContext, "store" | "topics">): void => {
  const tell = async (parent_id: string): Promise<void> => {
    for (const { id } of await store.all(listSubAgents({ parent_id }))) topics.publish("agent_gone", id, {});
  };
  topics.subscribeAll("agent_gone", (agent_id, _, isFar) => {
    // Where it happened they were told of, too.
    if (isFar) return;
    tell(agent_id).catch((error) => {
      log("agents").debug("the agents inside {agent_id} were not told: {error}", { agent_id, error });
    });
  });
};
