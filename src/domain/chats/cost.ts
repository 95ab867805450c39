// Costs of one chat tree, of one user's chats, and of all chats.
import { toRfc3339 } from "#base/clock.ts";
import { forbidden, notFound } from "#base/errors.ts";
import {
  countSpenders,
  listAgentTurnCosts,
  listTurnCosts,
  type SpendFilter,
  sumSpend,
  sumSpendByChat,
  sumSpendByModel,
  sumSpendByMonth,
  sumSpendByUser,
  ZERO_SPEND,
} from "#db/chats/spend.ts";
import type { ChatCost, CostSummary, UserCosts } from "#schema/chats/chat-cost.ts";
import type { Page } from "#schema/page.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canConfigureChats } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { findUserInPath } from "../users/find.ts";
import type { CostRange } from "./cost-range.ts";
import { findChangeableChat } from "./find.ts";

const MAX_TURNS = 100;

/** Returns the cost of the whole tree of a root chat. For its owner and site owners. Rejects with 404 or 403. */
export const loadChatCost = async (ctx: DomainContext, id: string, caller: UserCaller): Promise<ChatCost> => {
  const chat = await findChangeableChat(ctx, id, caller);
  const filter = { root: chat.parent_chat_id ?? chat.id };
  const { store } = ctx;
  const [sums, by_model, turns] = await Promise.all([
    store.scan(sumSpend(filter)),
    store.scan(sumSpendByModel(filter)),
    store.scan(
      chat.coding_agent === null
        ? listTurnCosts({ chat: chat.key, limit: MAX_TURNS })
        : listAgentTurnCosts({ chat: chat.key, chat_id: chat.id, root: filter.root, limit: MAX_TURNS }),
    ),
  ]);
  return { chat_id: chat.id, ...(sums[0] ?? ZERO_SPEND), by_model, turns };
};

/** Returns one user's spending: one's own, or anyone's for administrators; 404 for others. */
export const loadUserCost = async (
  ctx: DomainContext,
  text: string,
  caller: UserCaller,
  range: CostRange,
): Promise<CostSummary> => {
  const { id } = await findUserInPath(ctx.store, text, caller);
  if (id !== caller.user_id && !canConfigureChats(caller)) throw notFound();
  const filter: SpendFilter = { user_id: id, ...range };
  const { store } = ctx;
  const [[sums = ZERO_SPEND], by_model, by_chat, by_month] = await Promise.all([
    store.scan(sumSpend(filter)),
    store.scan(sumSpendByModel(filter)),
    store.scan(sumSpendByChat(filter)),
    store.scan(sumSpendByMonth(filter)),
  ]);
  const priced_request_count = sums.request_count - sums.unpriced_request_count;
  return { user_id: id, ...toDates(range), ...sums, priced_request_count, by_model, by_chat, by_month };
};

/** Returns the spending of all users, paged. For administrators; 403 for others. */
export const loadAllCosts = async (
  { store }: DomainContext,
  caller: UserCaller,
  range: CostRange,
  { search, ...page }: Page & { readonly search: string },
): Promise<UserCosts> => {
  if (!canConfigureChats(caller)) throw forbidden("Only administrators can see what others have spent.");
  const filter = { ...range, search: search.trim().toLowerCase() };
  const [[found], users] = await Promise.all([
    store.scan(countSpenders(filter)),
    store.scan(sumSpendByUser(filter, page)),
  ]);
  return { ...toDates(range), count: found?.count ?? 0, users };
};

const toDates = ({ from, to }: CostRange) => ({ start_date: toRfc3339(from), end_date: toRfc3339(to) });
