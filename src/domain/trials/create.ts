// Creates a trial: checks everything, then writes its row and the fork for its ways as one batch (rules TY-1, TY-2).
import { TRIAL, TRIAL_CHECK_TIMER } from "#actors/trials/keeper.ts";
import { AppError, conflict, invalidField, notFound } from "#base/errors.ts";
import { failpoint } from "#base/failpoint.ts";
import { uuid } from "#base/ids.ts";
import { type ChatAccessRow, type ChatRow, findChat } from "#db/chats/chats.ts";
import { CommitError } from "#db/engine/store.ts";
import { setTimer } from "#db/engine/timers.ts";
import {
  countOpenWays,
  findLastMessage,
  guardOpenWays,
  insertTrial,
  listOpenTrialsOfChat,
  type StoredWay,
  type TrialRow,
} from "#db/trials/trials.ts";
import type { ForkRow } from "#db/workspaces/forks.ts";
import {
  CHECK_SECONDS,
  type CreateTrial,
  type CreateTrialWay,
  MAX_OPEN_WAYS,
  type Trial,
} from "#schema/chats/trial.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { chooseCodingAgent } from "../ai/coding-agents.ts";
import { chooseModel } from "../chats/create.ts";
import { checkUsageLimit } from "../chats/usage-limits.ts";
import type { DomainContext } from "../context.ts";
import { findChangeableWorkspace } from "../workspaces/find.ts";
import { beginFork } from "../workspaces/forks.ts";
import { findKeeper } from "../workspaces/snapshots.ts";
import { auditTrial } from "./audit.ts";
import { presentTrial } from "./present.ts";

const WAYS = 3;
const MAX_TITLE = 200;

/** A requested way, before it has a workspace and a chat. */
type RequestedWay = Pick<StoredWay, "prompt" | "model_config_id" | "coding_agent">;

/**
 * Returns the new trial, whose forks are being created. Throws 400 for invalid values, 403 and 404 as for a fork of the chat's workspace,
 * and 409 while the chat is working or has open ways, beyond the limit, and if the workspace cannot be forked.
 */
export const createTrial = async (
  ctx: DomainContext,
  access: ChatAccessRow,
  body: CreateTrial,
  caller: UserCaller,
): Promise<Trial> => {
  const { store, clock } = ctx;
  if (access.parent_chat_id !== null) throw new AppError("invalid", "Ways can only be tried from a root chat.");
  const chat = await store.get(findChat({ id: access.id }));
  if (!chat) throw notFound();
  if (chat.workspace_id === null) {
    throw conflict("This chat has no workspace to fork. Ask it to create one first, or choose one for it.");
  }
  const workspace = await findChangeableWorkspace(ctx, chat.workspace_id, caller);
  const { unsupported } = await findKeeper(ctx, workspace);
  if (unsupported !== "") throw conflict(`Ways cannot be tried in this workspace. ${unsupported}`);
  const requested = await planWays(ctx, chat, body);
  await checkUsageLimit(ctx, caller.user_id);
  if (chat.status !== "waiting" && chat.status !== "error") {
    throw conflict("The chat is working. Wait until its turn has ended, or interrupt it.");
  }
  if ((await store.all(listOpenTrialsOfChat({ chat_id: chat.id }))).length > 0) {
    throw conflict("This chat already has open ways. Keep one or discard all of them first.");
  }
  const openCount = Number((await store.get(countOpenWays({ owner_id: caller.user_id })))?.count ?? 0);
  if (openCount + requested.length > MAX_OPEN_WAYS) throw tooManyWays(openCount);
  const up_to = (await store.get(findLastMessage({ chat: chat.key })))?.id ?? 0;
  const id = uuid();
  const chat_ids = requested.map(() => uuid());
  let row: TrialRow | undefined;
  await beginFork(ctx, workspace, { count: requested.length, start: true }, caller, {
    ending: (number) => `-way-${number}`,
    chats: (index) => [
      {
        from_chat_id: chat.id,
        up_to,
        chat_id: chat_ids[index] ?? "",
        title: makeTitle(chat, index + 1),
        coding_agent: requested[index]?.coding_agent ?? null,
      },
    ],
    rows: (fork) => {
      row = makeRow({ id, chat, body, fork, requested, now: clock.now() });
      const guard = guardOpenWays({ id, owner_id: caller.user_id });
      return [
        insertTrial(row),
        guard,
        setTimer(TRIAL, id, TRIAL_CHECK_TIMER, row.created_at),
        auditTrial(row, "try_ways", row.created_at),
      ];
    },
  }).catch((error) => {
    throw error instanceof CommitError && error.reason === "stale" ? tooManyWays(openCount) : error;
  });
  if (!row) throw new Error("a trial was made without its row");
  failpoint("trial_asked");
  ctx.topics.publish("owner_chats", caller.user_id, { kind: "trial_change", chat_id: chat.id });
  ctx.trials.wait(id);
  return presentTrial(ctx, row);
};

const tooManyWays = (openCount: number): AppError =>
  conflict(
    `You can have at most ${MAX_OPEN_WAYS} open ways and have ${openCount}. Keep or discard those of other chats first.`,
  );

/** Returns the requested ways, each with its prompt, model and coding agent. Throws 400. */
const planWays = async (
  ctx: DomainContext,
  chat: ChatRow,
  { prompt = "", count, ways }: CreateTrial,
): Promise<readonly RequestedWay[]> => {
  if (ways && count !== undefined && count !== ways.length) throw invalidField("count", "must be the number of ways");
  const requests: readonly CreateTrialWay[] = ways ?? Array.from({ length: count ?? WAYS }, () => ({}));
  const planned: RequestedWay[] = [];
  for (const [index, way] of requests.entries()) {
    const ownPrompt = (way.prompt ?? prompt).trim();
    if (ownPrompt === "") throw invalidField(ways ? `ways.${index}.prompt` : "prompt", "must not be empty");
    const requestedAgent = way.coding_agent === undefined ? chat.coding_agent : way.coding_agent;
    const coding_agent = await chooseCodingAgent(ctx, requestedAgent ?? undefined, chat.workspace_id);
    const switchesToModel = coding_agent === null && chat.coding_agent !== null;
    const needsModel = way.model_config_id !== undefined || switchesToModel;
    planned.push({
      prompt: ownPrompt,
      coding_agent,
      model_config_id: needsModel ? chooseModel(ctx, way.model_config_id) : null,
    });
  }
  return planned;
};

const makeTitle = ({ title }: ChatRow, number: number): string => {
  const suffix = ` (way ${number})`;
  return `${[...title].slice(0, MAX_TITLE - suffix.length).join("")}${suffix}`;
};

type NewTrial = {
  readonly id: string;
  readonly chat: ChatRow;
  readonly body: CreateTrial;
  readonly fork: ForkRow;
  readonly requested: readonly RequestedWay[];
  readonly now: number;
};

const makeRow = ({ id, chat, body, fork, requested, now }: NewTrial): TrialRow => ({
  id,
  chat_id: chat.id,
  workspace_id: fork.workspace_id,
  organization_id: fork.organization_id,
  owner_id: fork.owner_id,
  fork_id: fork.id,
  status: "running",
  error: "",
  check_command: body.check_command?.trim() ?? "",
  check_timeout_seconds: body.check_timeout_seconds ?? CHECK_SECONDS,
  ways: requested.map((way, index) => ({
    ...way,
    number: index + 1,
    workspace_id: fork.copies[index]?.workspace_id ?? "",
    chat_id: fork.copies[index]?.chats[0]?.chat_id ?? "",
    status: "waiting",
    error: "",
    message_id: null,
    turn: 0,
    interrupts: false,
    measured: false,
    changes: null,
    changes_error: "",
    check: null,
    started_at: null,
    ended_at: null,
    gone: false,
  })),
  keep: null,
  open_ways: requested.length,
  revision: 0,
  created_at: now,
  updated_at: now,
});
