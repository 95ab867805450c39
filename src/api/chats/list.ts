// Lists the caller's chats: parses the search text and labels into a filter (facts/chats 4.2). 400 names the invalid part.
import { invalid, invalidField } from "#base/errors.ts";
import { SearchQuery } from "#base/query.ts";
import { type ChatFilter, listPage } from "#db/chats/list.ts";
import type { Matching } from "#db/chats/search.ts";
import { findChatView, type ListedChat, listChatViews, listChildViews } from "#db/chats/views.ts";
import { canSeeChat } from "#domain/chats/find.ts";
import { presentChat } from "#domain/chats/present.ts";
import { searchChats, toSearch } from "#domain/chats/search.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { ApiContext } from "../context.ts";
import type { UserCaller } from "../http/caller.ts";
import { toPage } from "../http/paging.ts";

const DEFAULT_PAGE_SIZE = 50;
const SOURCES = ["created_by_me", "shared_with_me"] as const;
const PR_STATUSES = ["draft", "open", "merged", "closed"] as const;

export type ListQuery = { q?: string; after_id?: string; limit?: number; offset?: number; labels: readonly string[] };

export const listChats = async (ctx: ApiContext, caller: UserCaller, query: ListQuery): Promise<Chat[]> => {
  const { limit, offset } = toPage({ limit: query.limit || DEFAULT_PAGE_SIZE, offset: query.offset });
  const { filter, search } = parseFilter(query.q ?? "", query.labels, caller);
  const after = query.after_id === undefined ? undefined : await loadCursor(ctx, caller, query.after_id);
  const page = { limit, offset, after };
  const ids = await (search ? searchChats(ctx, filter, search, page) : ctx.store.scan(listPage(filter, page)));
  if (ids.length === 0) return [];
  const [views, children] = await Promise.all([
    ctx.store.scan(listChatViews(ids)),
    ctx.store.scan(listChildViews(ids)),
  ]);
  const viewById = new Map(views.map((view) => [view.chat.id, view]));
  const childrenByRoot = Map.groupBy(children, ({ chat }) => chat.parent_chat_id);
  // A chat that was deleted in the meantime is left out.
  return ids.flatMap((id) => {
    const view = viewById.get(id);
    return view ? [presentChat(view, childrenByRoot.get(id) ?? [])] : [];
  });
};

const loadCursor = async (ctx: ApiContext, caller: UserCaller, id: string): Promise<ListedChat> => {
  const makeCursorError = () => invalidField("after_id", "names none of your chats");
  const view = await ctx.store.get(findChatView(id.toLowerCase()));
  if (!view) throw makeCursorError();
  if (view.chat.owner_id === caller.user_id) return view.chat;
  // The pins of other users do not affect the order of this list.
  if (await canSeeChat(ctx, caller, view.chat)) return { ...view.chat, pin_order: 0 };
  throw makeCursorError();
};

type ParsedQuery = { readonly filter: ChatFilter; readonly search: Matching | undefined };

const parseFilter = (text: string, labels: readonly string[], caller: UserCaller): ParsedQuery => {
  const search = new SearchQuery(text);
  if (search.free !== "") search.addProblem("q", "Bare words are not supported; write title:word.");
  const sources = search.choices("source", SOURCES);
  const pullFilter = {
    statuses: search.choices("pr_status", PR_STATUSES),
    repo: search.text("repo"),
    title: search.text("pr_title"),
    number: parseNumberFilter(search),
    url: parseAddressFilter(search),
  };
  const filter: ChatFilter = {
    owner_id: caller.user_id,
    mine: sources.length === 0 || sources.includes("created_by_me"),
    shared_with: sources.includes("shared_with_me") ? listShareSubjects(caller) : [],
    archived: search.flag("archived") ?? false,
    has_unread: search.flag("has_unread"),
    title: search.text("title"),
    labels: parseLabels(labels),
    pull: pullFilter,
  };
  const matching = toSearch(search);
  search.requireValid("Invalid chat search query.");
  return { filter, search: matching };
};

/** Returns the IDs through which chats can be shared with this user: the user's ID and their groups' IDs. */
export const listShareSubjects = (caller: UserCaller): string[] => [caller.user_id, ...caller.groups];

const parseNumberFilter = (search: SearchQuery): number | undefined => {
  const number = search.text("pr");
  if (number !== undefined && !/^[1-9]\d*$/.test(number))
    search.addProblem("pr", `"${number}" is not a positive number.`);
  return number === undefined ? undefined : Number(number);
};

const parseAddressFilter = (search: SearchQuery): string | undefined => {
  const address = search.text("diff_url");
  if (address !== undefined && !(URL.canParse(address) && /^https?:\/\/[^/]/.test(address))) {
    search.addProblem("diff_url", `"${address}" is not an http or https URL.`);
  }
  return address;
};

/** Equal to the maximum number of labels of a chat. */
const MAX_LABELS = 50;

const parseLabels = (labels: readonly string[]): { key: string; value: string }[] => {
  if (labels.length > MAX_LABELS) throw invalidField("label", `must be given at most ${MAX_LABELS} times`);
  return labels.map(parseLabel);
};

const parseLabel = (text: string): { key: string; value: string } => {
  const separator = text.indexOf(":");
  if (separator <= 0 || separator === text.length - 1) {
    throw invalid("Query parameters have invalid values.", [{ field: "label", detail: "must be key:value" }]);
  }
  return { key: text.slice(0, separator), value: text.slice(separator + 1) };
};
