// Ends sub-agents with their parents: when an agent ends, its children are reported as ended too (rule SA-4).
import { log } from "#base/log.ts";
import { listSubAgents } from "#db/agents/sub-agents.ts";
import type { DomainContext } from "../context.ts";

/** Ends sub-agents with their parents for as long as the server runs. */
export const endWithParents = ({ store, topics }: Pick<DomainContext, "store" | "topics">): void => {
  const endChildren = async (parent_id: string): Promise<void> => {
    for (const { id } of await store.all(listSubAgents({ parent_id }))) topics.publish("agent_gone", id, {});
  };
  topics.subscribeAll("agent_gone", (agent_id, _, isFar) => {
    // The node where it happened has already reported the children.
    if (isFar) return;
    endChildren(agent_id).catch((error) => {
      log("agents").debug("cannot report the end of the agents inside {agent_id}: {error}", { agent_id, error });
    });
  });
};
