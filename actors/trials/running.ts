// Observes a way while its trial is running: its fork until its chat has the prompt, and then its chat.
import type { Clock } from "#base/clock.ts";
import { AppError, type ErrorKind } from "#base/errors.ts";
import { failpoint } from "#base/failpoint.ts";
import { findChat, findChatAccessRow } from "#db/chats/chats.ts";
import type { Store } from "#db/engine/store.ts";
import type { StoredWay, TrialRow } from "#db/trials/trials.ts";
import { type ForkRow, listBuildsOfFork } from "#db/workspaces/forks.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import type { ChatActor } from "../chat/actor.ts";
import { interruptChat } from "../chat/end-chat.ts";
import type { Directory } from "../runtime/directory.ts";
import { isWorkspaceReady } from "../workspace/readiness.ts";
import type { TrialEvent } from "./state.ts";

/** Kinds of errors that may be temporary, so delivery is retried. */
const TEMPORARY_KINDS: ReadonlySet<ErrorKind> = new Set([
  ...(["overloaded", "too_many_requests", "bad_gateway", "gateway_timeout", "timeout", "storage_full"] as const),
  "internal",
]);

export type RunningDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly chats: Directory<ChatActor>;
  /** Sends the prompt to the way's chat once, and returns the message ID. Throws AppError if that is not possible. */
  readonly deliver: (trial: TrialRow, way: StoredWay) => Promise<number>;
};

/** Returns the next event of the way; undefined if nothing has happened. */
export const checkRunningWay = async (
  deps: RunningDeps,
  { trial, fork }: { readonly trial: TrialRow; readonly fork: ForkRow | undefined },
  way: StoredWay,
): Promise<TrialEvent | undefined> => {
  if (way.gone) return undefined;
  if (way.message_id !== null) return checkChat(deps, way);
  return way.status === "waiting" ? checkFork(deps, { trial, fork }, way) : undefined;
};

const checkChat = async ({ store, clock, chats }: RunningDeps, way: StoredWay): Promise<TrialEvent | undefined> => {
  const { number } = way;
  const now = clock.now();
  const chat = await store.get(findChat({ id: way.chat_id }));
  if (!chat) return { type: "broken", number, error: "Its chat was deleted.", now };
  const { status } = chat;
  const isActive = status === "running" || status === "requires_action";
  if (way.interrupts && isActive) await interruptChat(chats, way.chat_id);
  if (status === "requires_action") return { type: "seen", number, chat: "needs_approval", now };
  if (isActive || status === "interrupting") return { type: "seen", number, chat: "running", now };
  const failed = status === "error" ? { failed: chat.last_error?.message || "Its turn failed." } : {};
  return { type: "seen", number, chat: "idle", ...failed, now };
};

const checkFork = async (
  deps: RunningDeps,
  { trial, fork }: { readonly trial: TrialRow; readonly fork: ForkRow | undefined },
  way: StoredWay,
): Promise<TrialEvent | undefined> => {
  const { store, clock, deliver } = deps;
  const { number, workspace_id, chat_id } = way;
  const now = clock.now();
  const toBrokenEvent = (error: string): TrialEvent => ({ type: "broken", number, error, now });
  const problem = fork?.problems[workspace_id] ?? (fork?.status === "failed" ? fork.error : undefined);
  if (problem !== undefined) return toBrokenEvent(problem);
  const workspace = await store.get(findWorkspace({ id: workspace_id }));
  if (!workspace) return undefined;
  if (workspace.deleted) return toBrokenEvent("Its workspace was deleted.");
  if (workspace.status === "failed" || workspace.status === "canceled")
    return toBrokenEvent(await findBuildError(store, fork, way));
  if (!(await store.get(findChatAccessRow({ id: chat_id })))) {
    return fork?.status === "ready" ? toBrokenEvent("The chat was deleted before it was copied.") : undefined;
  }
  if (!(await isWorkspaceReady(store, workspace_id, now))) return undefined;
  try {
    const message_id = await deliver(trial, way);
    failpoint("trial_delivered");
    return { type: "delivered", number, message_id, now };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return TEMPORARY_KINDS.has(error.kind) ? undefined : toBrokenEvent(formatAppError(error));
  }
};

const findBuildError = async (
  store: Store,
  fork: ForkRow | undefined,
  { workspace_id }: StoredWay,
): Promise<string> => {
  const builds = fork ? await store.all(listBuildsOfFork({ restored_snapshot_id: fork.snapshot_id })) : [];
  const ofWorkspace = builds.filter((one) => one.workspace_id === workspace_id);
  const newest = ofWorkspace.toSorted((a, b) => b.build_number - a.build_number)[0];
  return newest?.error || "The build of its workspace failed.";
};

/** Returns an error's message for people. */
export const formatAppError = ({ message, detail, validations }: AppError): string =>
  [message, detail, ...validations.map(({ field, detail: rule }) => `${field} ${rule}.`)]
    .filter((words) => words !== "")
    .join(" ");
