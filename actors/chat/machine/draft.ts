// Builds a transition: starts from the previous state, collects changes, and maintains the invariants and counters of facts/chats 1.4 for
// every row of the table. Used only by state.ts.
import type { BudgetPause } from "#schema/ai/budget.ts";
import type { ChatError } from "#schema/chats/chat-error.ts";
import type { ChatStatus } from "#schema/chats/chat-status.ts";
import type {
  Change,
  CompactionRequest,
  Effect,
  Execution,
  Message,
  NewMessage,
  NewQueued,
  PendingCall,
  QueueItem,
  RetryState,
} from "./decision.ts";
import { updatePendingCalls, updatePendingQuestion } from "./pending.ts";

/** Maximum queued messages of a chat (facts/chats 1.7). */
export const MAX_QUEUED = 20;

type FindPermission = (tool_call_id: string) => Pick<PendingCall, "permission" | "is_withdrawn"> | undefined;
type MutableExecution = { -readonly [K in keyof Execution]: Execution[K] };

export class Draft<S extends Execution> {
  readonly #before: S;
  readonly #next: MutableExecution;
  readonly #now: number;
  readonly #inserted: Message[] = [];
  readonly #promoted: QueueItem[] = [];
  readonly #effects: (() => Effect)[] = [];
  #nextId: number;
  #isRestarted = false;
  #deletedFrom: number | null = null;

  constructor(before: S, base: { now: number; first_id: number }) {
    this.#before = before;
    this.#next = { ...before, snapshot_version: before.snapshot_version + 1, updated_at: base.now };
    this.#now = base.now;
    this.#nextId = base.first_id;
  }

  get isQueueEmpty(): boolean {
    return this.#next.queue.length === 0;
  }

  get isQueueFull(): boolean {
    return this.#next.queue.length >= MAX_QUEUED;
  }

  findQueued(id: number): QueueItem | undefined {
    return this.#next.queue.find((queued) => queued.id === id);
  }

  /**
   * Changes the status. Clears everything that belongs to the status being left: the error, the deadline, the retry, the budget pause and a
   * requested compaction.
   */
  become(status: ChatStatus): void {
    if (status !== "error") this.#next.last_error = null;
    if (status !== "running") this.#setRetry(null);
    this.#next.compaction = null;
    this.#next.requires_action_deadline = null;
    this.#next.budget_pause = null;
    this.#next.status = status;
  }

  fail(error: ChatError): void {
    this.become("error");
    this.#next.last_error = error;
  }

  setArchived(archived: boolean): void {
    this.#next.archived = archived;
  }

  awaitResultsUntil(deadline: number): void {
    this.become("requires_action");
    this.#next.requires_action_deadline = deadline;
  }

  /** Makes the turn wait for a budget until `resets_at`. */
  pauseForBudget(pause: BudgetPause, resets_at: number): void {
    this.awaitResultsUntil(resets_at);
    this.#next.budget_pause = pause;
  }

  append(message: NewMessage): void {
    const row: Message = {
      ...message,
      id: this.#nextId++,
      created_at: this.#now,
      revision: this.#next.snapshot_version,
    };
    this.#inserted.push(row);
    this.#next.compaction = null;
    this.#next.pending_calls = updatePendingCalls(this.#next.pending_calls, row);
    this.#next.asked_by = updatePendingQuestion(this.#next.asked_by, row);
    if (row.role === "assistant" && row.visibility !== "model") this.#next.last_assistant_id = row.id;
  }

  /** Records the permissions of pending calls (rule PE-5). Calls for which the function returns undefined stay unchanged. */
  markCalls(findPermission: FindPermission): void {
    this.#next.pending_calls = this.#next.pending_calls.map((call) => ({
      ...call,
      ...findPermission(call.tool_call_id),
    }));
  }

  /** Begins a turn that only compacts the history. */
  requestCompaction(request: CompactionRequest): void {
    this.#next.compaction = request;
    this.restartGeneration();
    this.generate();
  }

  /** Starts a new generation as if the history had changed. */
  restartGeneration(): void {
    this.#isRestarted = true;
  }

  /** Appends an error result with this reason for every pending call. */
  cancelCalls(reason: string): void {
    for (const { tool_call_id, tool_name } of this.#next.pending_calls) {
      this.append(toolMessage({ tool_call_id, tool_name, result: { error: reason }, is_error: true, now: this.#now }));
    }
  }

  /** Appends a user's message. Cancels pending calls first, because providers require a result for every call. */
  appendUser(message: NewMessage): void {
    this.cancelCalls(CANCELED);
    this.append(message);
  }

  /** Moves a message from the queue to the history: the first one if no ID is given. */
  promote(id = this.#next.queue[0]?.id): void {
    const row = this.#next.queue.find((queued) => queued.id === id);
    if (!row) return;
    this.removeQueued(row.id);
    this.#promoted.push(row);
    const { content, created_by, model_config_id, custom_prompt = null } = row;
    const prompt = { content, created_by, model_config_id, custom_prompt };
    this.appendUser({ role: "user", visibility: "both", ...prompt, usage: null });
  }

  enqueue(message: NewQueued): void {
    const position = (this.#next.queue.at(-1)?.position ?? 0) + 1;
    this.#setQueue([...this.#next.queue, { ...message, position, created_at: this.#now }]);
  }

  removeQueued(id: number): void {
    this.#setQueue(this.#next.queue.filter((queued) => queued.id !== id));
  }

  moveToHead(row: QueueItem): void {
    const [head] = this.#next.queue;
    if (!head || head.id === row.id) return;
    const others = this.#next.queue.filter((queued) => queued.id !== row.id);
    this.#setQueue([{ ...row, position: head.position - 1 }, ...others]);
  }

  clearQueue(): void {
    if (!this.isQueueEmpty) this.#setQueue([]);
  }

  /** Removes this message and all later ones from the history. */
  deleteFrom(id: number, lastAssistantId: number): void {
    this.#deletedFrom = id;
    this.#next.pending_calls = this.#next.pending_calls.filter((call) => call.message_id < id);
    this.#next.last_assistant_id = lastAssistantId;
    this.#next.asked_by = null;
  }

  beginAttempt(): void {
    this.#next.generation_attempt += 1;
    this.#setRetry(null);
  }

  retry(retry: RetryState): void {
    this.#setRetry(retry);
  }

  generate(): void {
    this.#effects.push(() => ({ do: "generate", history_version: this.#next.history_version }));
  }

  interrupt(): void {
    this.become("interrupting");
    this.#effects.push(() => ({ do: "interrupt", history_version: this.#next.history_version }));
  }

  finish(): Change<S> {
    if (this.#inserted.length > 0 || this.#deletedFrom !== null || this.#isRestarted) {
      this.#next.history_version = this.#next.snapshot_version;
      this.#next.generation_attempt = 0;
      this.#setRetry(null);
    }
    return {
      kind: "change",
      state: { ...this.#before, ...this.#next },
      inserted: this.#inserted,
      promoted: this.#promoted,
      deleted_from: this.#deletedFrom,
      effects: this.#effects.map((effect) => effect()),
    };
  }

  #setQueue(queue: readonly QueueItem[]): void {
    this.#next.queue = queue;
    this.#next.queue_version = this.#next.snapshot_version;
  }

  #setRetry(retry: RetryState | null): void {
    if (retry === null && this.#next.retry_state === null) return;
    this.#next.retry_state = retry;
    this.#next.retry_version = this.#next.snapshot_version;
  }
}

const CANCELED = "The call was cancelled before it had a result.";

type Result = { tool_call_id: string; tool_name: string; result: unknown; is_error: boolean; now: number } & {
  mcp_server_config_id?: string;
  is_media?: true;
};

/** Returns the history row of a tool result. */
export const toolMessage = ({ now, ...result }: Result): NewMessage => ({
  role: "tool",
  visibility: "both",
  content: [{ type: "tool-result", ...result, created_at: new Date(now).toISOString() }],
  created_by: null,
  model_config_id: null,
  usage: null,
});
