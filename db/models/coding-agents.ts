// Coding agents that administrators added or changed: one value of the table `settings` for each.
import type { CodingAgent } from "#schema/ai/coding-agents.ts";
import type { Statement } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";
import { deleteSetting, findSetting, listSettings, putSetting } from "../settings.ts";

const PREFIX = "coding_agent:";
/** The end of the range of keys with the prefix. */
const BEHIND = "coding_agent;";

export const listCodingAgents = async (store: Pick<Store, "all">): Promise<readonly CodingAgent[]> =>
  (await store.all(listSettings({ from: PREFIX, to: BEHIND }))).map(({ value }) => JSON.parse(value) as CodingAgent);

export const findCodingAgent = async (store: Pick<Store, "get">, name: string): Promise<CodingAgent | undefined> => {
  const row = await store.get(findSetting({ key: PREFIX + name }));
  return row ? (JSON.parse(row.value) as CodingAgent) : undefined;
};

export const putCodingAgent = (agent: CodingAgent): Statement =>
  putSetting({ key: PREFIX + agent.name, value: JSON.stringify(agent) });

export const deleteCodingAgent = (name: string): Statement => deleteSetting(PREFIX + name);
