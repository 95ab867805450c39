// Sends each task its prompt exactly once: when the workspace is ready, creates the chat with it. The remaining work is a timer row, so
// it is repeated after a crash. The chat's ID is derived from the task, so the chat is created once (rules TK-1 to TK-3).
import type { Clock } from "#base/clock.ts";
import { AppError, type ErrorKind } from "#base/errors.ts";
import { log } from "#base/log.ts";
import type { Topics } from "#base/topics.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import { clearTimer, findActorTimer, setTimer, type Timer } from "#db/engine/timers.ts";
import { ALL_ROWS, type IsLeaving, type OwnRows } from "#db/own-rows.ts";
import { beginDelivery, findTask, listOpenTasks, type TaskRow, updateTask } from "#db/tasks/tasks.ts";
import type { Events } from "../runtime/events.ts";
import { runOutsideMailbox } from "../runtime/mailbox.ts";
import { CheckQueue } from "../runtime/serialized-checks.ts";
import type { Service } from "../runtime/service.ts";
import { isWorkspaceReady } from "../workspace/readiness.ts";

/** The kind and names of the keeper's timers. */
export const TASK = "task";
export const PROMPT_TIMER = "prompt";
export const END_CHAT_TIMER = "end";

/** Interval of checks without an event, in case one was missed. */
const CHECK_INTERVAL_MS = 30_000;
/** Errors that may resolve soon. */
const TEMPORARY_KINDS: ReadonlySet<ErrorKind> = new Set([
  ...(["overloaded", "too_many_requests", "bad_gateway", "gateway_timeout", "timeout", "storage_full"] as const),
  ...(["conflict", "internal"] as const),
]);

type Waiting = { readonly task_id: string; readonly workspace_id: string };

export type TaskKeeperDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly topics: Topics<Events>;
  /** Creates the task's chat with its prompt, or finds the existing one. Throws AppError when that is not possible. */
  readonly begin: (task: TaskRow) => Promise<void>;
  /** Stops and archives the chat. */
  readonly end: (chat_id: string) => Promise<void>;
};

export class TaskKeeper implements Service {
  readonly timers = { [TASK]: ({ actor_id, name }: Timer) => this.onTimer(actor_id, name) };
  readonly #deps: TaskKeeperDeps;
  /** Maps a workspace to its task with an undelivered prompt. */
  readonly #waiting = new Map<string, string>();
  readonly #checks = new CheckQueue(
    (id) => this.#checkOnce(id),
    (task_id, error) => {
      // The prompt was changed concurrently.
      if (error instanceof CommitError && error.reason === "stale") return "again";
      log("tasks").error("cannot check task {task_id}: {error}", { task_id, error });
      return "later";
    },
  );

  constructor(deps: TaskKeeperDeps) {
    this.#deps = deps;
    const onWorkspaceEvent = (workspace_id: string): void => {
      const task_id = this.#waiting.get(workspace_id);
      if (task_id !== undefined) runOutsideMailbox(() => void this.#checks.check(task_id));
    };
    deps.topics.subscribeAll("workspace", onWorkspaceEvent);
    deps.topics.subscribeAll("workspace_changed", onWorkspaceEvent);
    deps.topics.subscribeAll("missed", () => {
      for (const workspace_id of this.#waiting.keys()) onWorkspaceEvent(workspace_id);
    });
  }

  /** Checks the task whenever its workspace changes. */
  wait({ task_id, workspace_id }: Waiting): void {
    this.#waiting.set(workspace_id, task_id);
    void this.#checks.check(task_id);
  }

  /** Resumes the waiting tasks: all of them after a start, or those of shards that came from another server. */
  async recover(own = ALL_ROWS): Promise<void> {
    for (const { task } of await this.#deps.store.all(listOpenTasks({}, own))) {
      this.wait({ task_id: task.id, workspace_id: task.workspace_id });
    }
  }

  /** Stops working on tasks, except on those in `kept`. Resolves when no check is running. */
  async release(_isLeaving: IsLeaving, kept: OwnRows): Promise<void> {
    this.#waiting.clear();
    await this.#checks.whenSettled();
    await this.recover(kept);
  }

  async stop(): Promise<void> {
    await this.#checks.stop();
  }

  /** Handles a due timer: of a task that waits for its prompt, or of a chat that must end. `id` is the ID of the task or the chat. */
  async onTimer(id: string, name: string): Promise<void> {
    if (name === PROMPT_TIMER) return this.#checks.check(id);
    await this.#deps.end(id);
    await this.#deps.store.commit([clearTimer(TASK, id, END_CHAT_TIMER)]);
  }

  async #checkOnce(task_id: string): Promise<void> {
    const { store, clock, begin } = this.#deps;
    const { task, part } = (await store.get(findTask({ id: task_id }))) ?? {};
    const done = clearTimer(TASK, task_id, PROMPT_TIMER);
    if (!task) return this.#commitEnd(task_id, [done], undefined);
    const now = clock.now();
    // A workspace changes often, and each attempt may ask a lifecycle hook.
    if (task.problem !== "" && !(await this.#isRetryDue(task_id, now))) return this.#stopWaiting(task_id);
    this.#waiting.set(task.workspace_id, task_id);
    if (!(await isWorkspaceReady(store, task.workspace_id, now))) {
      await store.commit([setTimer(TASK, task_id, PROMPT_TIMER, now + CHECK_INTERVAL_MS)], { of: part });
      return;
    }
    // Already set if the server crashed before the chat was created or the timer was cleared.
    if (task.delivered_at === null) {
      const delivery = beginDelivery({ id: task_id, known_updated_at: task.updated_at, delivered_at: now });
      await store.commit([delivery], { of: part });
    }
    try {
      await begin(task);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return this.#onFailure(task, error, part);
    }
    await this.#commitEnd(task_id, [done], part);
  }

  /** Returns whether the task's last error was temporary and its retry is due. */
  async #isRetryDue(task_id: string, now: number): Promise<boolean> {
    const timer = await this.#deps.store.get(findActorTimer(TASK, task_id, PROMPT_TIMER));
    return timer !== undefined && timer.due <= now;
  }

  /** Retries temporary errors when the timer is due. Any other error remains until someone resumes the task. */
  async #onFailure(task: TaskRow, { message, detail, kind }: AppError, part: number | undefined): Promise<void> {
    const { store, clock } = this.#deps;
    const problem = [message, detail].filter((words) => words !== "").join(" ");
    const storeProblem = [updateTask(task.id, { problem, delivered_at: null, updated_at: clock.now() })];
    if (TEMPORARY_KINDS.has(kind)) {
      const retryTimer = setTimer(TASK, task.id, PROMPT_TIMER, clock.now() + CHECK_INTERVAL_MS);
      await store.commit([...storeProblem, retryTimer], { of: part });
      return;
    }
    log("tasks").warn("task {task_id} does not get its prompt: {problem}", { task_id: task.id, problem });
    await this.#commitEnd(task.id, [...storeProblem, clearTimer(TASK, task.id, PROMPT_TIMER)], part);
  }

  async #commitEnd(task_id: string, writes: Parameters<Store["commit"]>[0], part: number | undefined): Promise<void> {
    await this.#deps.store.commit(writes, { of: part });
    this.#stopWaiting(task_id);
  }

  #stopWaiting(task_id: string): void {
    for (const [workspace_id, waiting] of this.#waiting) if (waiting === task_id) this.#waiting.delete(workspace_id);
  }
}
