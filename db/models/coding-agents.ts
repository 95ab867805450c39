// Coding agents that administrators added or changed: one value of the table `settings` for each.
import type { CodingAgent } from "#schema/ai/coding-agents.ts";
import type { Statement } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";
import { deleteSetting, findSetting, listSettings, upsertSetting } from "../settings.ts";

const PREFIX = "coding_agent:";
/** The end of the range of keys with the prefix. */
const PREFIX_END = "coding_agent;";

export const listCodingAgents = async (store: Pick<Store, "all">): Promise<readonly CodingAgent[]> =>
  (await store.all(listSettings({ from: PREFIX, to: PREFIX_END }))).map(
    ({ value }) => JSON.parse(value) as CodingAgent,
  );

export const findCodingAgent = async (store: Pick<Store, "get">, name: string): Promise<CodingAgent | undefined> => {
  const row = await store.get(findSetting({ key: PREFIX + name }));
  return row ? (JSON.parse(row.value) as CodingAgent) : undefined;
};

export const upsertCodingAgent = (agent: CodingAgent): Statement =>
  upsertSetting({ key: PREFIX + agent.name, value: JSON.stringify(agent) });

export const deleteCodingAgent = (name: string): Statement => deleteSetting(PREFIX + name);
