// Runs the pure state machine alongside a live chat. For every published commit, one command (or a step and the command that follows it)
// must lead to the published state. Used by random-run.ts.
import type { ChatState } from "#actors/chat/machine/chat-state.ts";
import type { Command, Execution, Message, NewMessage } from "#actors/chat/machine/decision.ts";
import { transition } from "#actors/chat/machine/state.ts";
import { type ChatNotice, toPicture } from "#actors/chat/messages.ts";
import { toStateName } from "#actors/chat/names.ts";
import { readChat } from "#actors/chat/storage/read.ts";
import type { ApiContext } from "#src/api/context.ts";

type PendingCommand = Command extends infer C ? (C extends Command ? Omit<C, "now" | "first_id"> : never) : never;
type TransitionResult = { readonly state: ChatState; readonly inserted: readonly Message[]; readonly reset: boolean };

const toNewMessage = ({ id: _, created_at: __, revision: ___, ...message }: Message): NewMessage => message;

/** Yields every command, or pair of commands in one commit, that could lead from `before` to this notice. */
function* listPossibleCommands(
  before: Execution,
  { queue, messages, reset, retry_state, last_error }: ChatNotice,
): Iterable<PendingCommand[]> {
  const { history_version, generation_attempt, pending_calls } = before;
  const fence = { history_version, generation_attempt };
  const addedMessage = queue.find(({ id }) => !before.queue.some((queued) => queued.id === id));
  const removedMessage = before.queue.find(({ id }) => !queue.some((queued) => queued.id === id));
  const lastMessage = messages.at(-1);
  const userMessage = lastMessage?.role === "user" ? lastMessage : undefined;
  if (reset && userMessage) yield [{ type: "edit", from: 1, last_assistant_id: 0, message: toNewMessage(userMessage) }];
  if (reset) return;
  const sentMessage = addedMessage ?? userMessage;
  if (sentMessage) {
    const { content, created_by, model_config_id } = sentMessage;
    const message = {
      id: sentMessage.id,
      content,
      created_by: created_by ?? "",
      model_config_id,
      reasoning_effort: "",
    };
    yield [{ type: "send", behavior: "queue", message }];
    yield [{ type: "send", behavior: "interrupt", message }];
  }
  if (removedMessage) yield [{ type: "delete_queued", queued_id: removedMessage.id }];
  const results = messages
    .flatMap(({ content }) => content)
    .filter(({ tool_call_id }) => pending_calls.some((call) => call.tool_call_id === tool_call_id))
    .map(({ tool_call_id = "", result, is_error = false }) => ({ tool_call_id, output: result, is_error }));
  yield [{ type: "interrupt" }];
  yield [{ type: "cancel_requires_action" }];
  yield [{ type: "complete_requires_action", results }];
  yield [{ type: "record_attempt", history_version }];
  if (retry_state) yield [{ type: "record_retry", fence, retry: retry_state }];
  if (last_error) yield [{ type: "finish_error", fence, error: last_error, messages: messages.map(toNewMessage) }];
  for (let count = messages.length; count >= 0; count--) {
    const stored = messages.slice(0, count).map(toNewMessage);
    const step = { type: "commit_step", fence, messages: stored } as const;
    yield [step];
    yield [step, { type: "enter_requires_action", history_version: 0 }];
    yield [step, { type: "finish_turn", history_version: 0 }];
    yield [{ type: "finish_interruption", history_version, partial: stored }];
  }
  for (const queued of [removedMessage, queue[0]]) if (queued) yield [{ type: "promote_queued", queued_id: queued.id }];
  yield [{ type: "archive" }];
  yield [{ type: "unarchive" }];
}

const applyCommands = (
  before: ChatState,
  pending: PendingCommand[],
  { messages, queue }: ChatNotice,
): TransitionResult | undefined => {
  let [state, inserted, reset]: [ChatState, Message[], boolean] = [before, [], false];
  for (const pendingCommand of pending) {
    // Each command of a commit has its own time.
    const nextMessage = messages[inserted.length];
    const now = (nextMessage ?? messages.at(-1) ?? queue.at(-1))?.created_at ?? 0;
    const first_id = nextMessage?.id ?? 0;
    // The command after a step applies to the history version that the step created.
    const usesCurrentHistory = pendingCommand.type === "enter_requires_action" || pendingCommand.type === "finish_turn";
    const command = {
      ...pendingCommand,
      ...(usesCurrentHistory ? { history_version: state.history_version } : {}),
      first_id,
      now,
    } as Command;
    const decision = transition(state, command);
    if (decision.kind !== "change") return undefined;
    state = decision.state;
    inserted = [...inserted, ...decision.inserted];
    reset ||= decision.deleted_from !== null;
  }
  return { state, inserted, reset };
};

const toNotice = ({ state, inserted, reset }: TransitionResult): ChatNotice => ({
  ...toPicture(state),
  messages: inserted,
  reset,
});

/** Removes columns that a queued message has only when it is loaded from the database. */
const removeLoadedColumns = (notice: ChatNotice): ChatNotice => ({
  ...notice,
  queue: notice.queue.map(({ id, position, content, created_by, model_config_id, reasoning_effort, created_at }) => ({
    id,
    position,
    content,
    created_by,
    model_config_id,
    reasoning_effort,
    created_at,
  })),
});

/** Subscribes to one chat's notices and records every commit that no command explains. */
export class Machine implements Disposable {
  readonly problems: string[] = [];
  /** Counts of transitions by "STATE COMMAND STATE". */
  readonly transitions = new Map<string, number>();
  readonly commands = new Map<string, number>();
  #state: ChatState | undefined;
  readonly #earlyNotices: ChatNotice[] = [];
  readonly #unsubscribe: () => void;

  private constructor({ topics }: ApiContext, id: string) {
    this.#unsubscribe = topics.subscribe("chat", id, (notice) => this.#onNotice(removeLoadedColumns(notice)));
  }

  static async follow(context: ApiContext, id: string): Promise<Machine> {
    const machine = new Machine(context, id);
    machine.#state = await readChat(context.store, id);
    for (const notice of machine.#earlyNotices.splice(0)) machine.#onNotice(notice);
    return machine;
  }

  get state(): ChatState | undefined {
    return this.#state;
  }

  [Symbol.dispose](): void {
    this.#unsubscribe();
  }

  #onNotice(notice: ChatNotice): void {
    const before = this.#state;
    if (!before) return void this.#earlyNotices.push(notice);
    if (notice.snapshot_version <= before.snapshot_version) return;
    for (const commands of listPossibleCommands(before, notice)) {
      const after = applyCommands(before, commands, notice);
      if (!after || !Bun.deepEquals(removeLoadedColumns(toNotice(after)), notice)) continue;
      this.#state = after.state;
      const name = commands.map(({ type }) => type).join("+");
      const transitionName = `${toStateName(before)} ${name} ${toStateName(after.state)}`;
      this.transitions.set(transitionName, (this.transitions.get(transitionName) ?? 0) + 1);
      this.commands.set(name, (this.commands.get(name) ?? 0) + 1);
      return;
    }
    this.problems.push(`from ${toStateName(before)} ${JSON.stringify(toPicture(before))} to ${JSON.stringify(notice)}`);
    this.#state = { ...before, ...notice };
  }
}
