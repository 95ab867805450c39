// The history that a model continues from: everything, or the compacted past, the messages unanswered at that time, and everything since
// (facts/chats 5.6). Used by turns.
import {
  findMarker,
  isCutHistory,
  listModelBefore,
  listModelHistory,
  listSystemRows,
  type MessageRow,
} from "#db/chats/messages.ts";
import type { Store } from "#db/engine/store.ts";

/** Oldest first; of more than is read at a time the newest, from something that a person has said on. The row for the past stands before those it has left as they are, though it was written after them (rule CM-4). */
export const readHistory = async (store: Store, chat: number): Promise<readonly MessageRow[]> => {
  const marker = await store.get(findMarker({ chat }));
  if (!marker) return wholeTurns(await store.scan(listModelHistory({ chat, from: 0 })));
  const { id: before, replayed } = marker;
  const system = await store.scan(listSystemRows({ chat, before }));
  const left = replayed ? await store.scan(listModelBefore({ chat, before, limit: replayed })) : [];
  const [past, ...rest] = await store.scan(listModelHistory({ chat, from: before }));
  const since = wholeTurns(rest);
  return past ? [...system, past, ...left.reverse(), ...since] : [...system, ...left];
};

type Sized = MessageRow & { readonly bytes: number };

/** Results without their calls are refused by models. */
const wholeTurns = (rows: readonly Sized[]): readonly MessageRow[] => {
  if (!isCutHistory(rows)) return rows;
  const first = rows.findIndex(({ role }) => role === "user");
  return rows.slice(first === -1 ? rows.findIndex(({ role }) => role === "assistant") : first);
};
