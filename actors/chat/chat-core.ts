// What every message of a chat's actor is made of: a decision by the table of state.ts becomes one batch, and what follows it is
// announced. ChatActor (chat-actor.ts) says which messages there are.
import type { Clock } from "#base/clock.ts";
import { conflict } from "#base/errors.ts";
import type { Topics } from "#base/topics.ts";
import { listChildren } from "#db/chats/chats.ts";
import { findAnswer, keepAnswer, type RequestKey } from "#db/chats/requests.ts";
import type { Store } from "#db/engine/store.ts";
import type { AuditEntry } from "#db/reports/audit/audit.ts";
import type { MessagePart } from "#schema/chat-part.ts";
import type { LanguageModels } from "#src/llm/model.ts";
import { Actor, type Outcome } from "../runtime/actor.ts";
import type { Directory } from "../runtime/directory.ts";
import type { Events } from "../runtime/events.ts";
import { outsideTurn } from "../runtime/mailbox.ts";
import type { ChatActor } from "./actor.ts";
import { announce, resume } from "./announce.ts";
import { attachWrites } from "./attach.ts";
import { chatEntries } from "./audit.ts";
import type { Diffs } from "./background/pull-requests.ts";
import type { SearchUpkeep } from "./background/search-upkeep.ts";
import type { Titles } from "./background/titles.ts";
import { type CheckedCommand, checkedCommand } from "./hooks/checked.ts";
import type { ChatState } from "./machine/chat-state.ts";
import type { Change, Command, CommandType } from "./machine/decision.ts";
import { promotedPatch } from "./machine/promoted.ts";
import { numbersFor, transition } from "./machine/state.ts";
import type { ChatPatch, Late } from "./messages.ts";
import { readChat } from "./storage/read.ts";
import { patchWrites, writesOf } from "./storage/writes.ts";
import { type Spawned, type SpawnSubagent, spawnRefusal } from "./subagents/create.ts";
import type { Generations } from "./turn/runner.ts";

export type ChatDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly topics: Topics<Events>;
  readonly models: LanguageModels;
  readonly generations: Generations;
  readonly index: SearchUpkeep;
  readonly titles: Titles;
  readonly diffs: Diffs;
  /** For the sub-chats that are archived with their root. */
  readonly chats: () => Directory<ChatActor>;
};

/** A command before it has its time and numbers. */
export type Wish = Command extends infer C ? (C extends Command ? Omit<C, "now" | "first_id"> : never) : never;
type Decided = Change<ChatState> | "stale";

export abstract class ChatCore extends Actor<ChatState> {
  protected readonly parts: ChatDeps;

  constructor(id: string, parts: ChatDeps) {
    super(id, parts.store);
    this.parts = parts;
  }

  protected async load(): Promise<ChatState | undefined> {
    const state = await readChat(this.parts.store, this.id);
    // A turn that is owed but not running: after a start, and after a commit that could not be confirmed.
    if (state) outsideTurn(() => resume(this.parts.generations, state));
    return state;
  }

  protected override entries(
    before: ChatState | undefined,
    outcome: Outcome<ChatState, unknown>,
  ): readonly AuditEntry[] {
    return chatEntries(before, outcome, this.parts.clock.now());
  }

  protected override mayLeave(): boolean {
    return !this.parts.generations.holds(this.id);
  }

  /** Refuses as `send`, `edit` or the client's answers would be refused now; changes nothing. For whoever asks others before (rule HK-8). */
  check(asked: CheckedCommand): Promise<void> {
    return this.handle(async (state) => {
      const command = await checkedCommand(this.parts, state, asked);
      const decision = transition(state, { ...command, first_id: 0, now: this.parts.clock.now() });
      if (decision.kind === "refused") throw decision.error;
      return { state, reply: undefined };
    });
  }

  /** Whether `spawn` would make it now. */
  maySpawn(wish: SpawnSubagent): Promise<Spawned> {
    return this.handle<Spawned>(async (state) => {
      const count = (await this.parts.store.all(listChildren({ root: this.id }))).length;
      return { state, reply: spawnRefusal(state, wish, count) ?? "done" };
    });
  }

  /** A turn whose answer is kept under the key: when the same comes again, that is the answer and nothing happens. 409 for another body. */
  protected once<Reply>(
    request: RequestKey | undefined,
    decide: (state: ChatState) => Promise<Outcome<ChatState, Reply>>,
  ): Promise<Reply> {
    return this.handle<Reply>(async (state) => {
      if (request === undefined) return decide(state);
      const { store, clock } = this.parts;
      const known = await findAnswer(store, state.key, request);
      if (known) return { state, reply: known.answer as Reply };
      const outcome = await decide(state);
      const writes = [
        ...(outcome.writes ?? []),
        ...keepAnswer(state.key, request, { answer: outcome.reply, now: clock.now() }),
      ];
      return { ...outcome, writes };
    });
  }

  /** One command of a person. */
  protected handleCommand(wish: Wish): Promise<void> {
    return this.handle(async (state) => this.outcome(state, await this.decide(state, wish), undefined));
  }

  /** One command of a turn or a timer. */
  protected report(wish: Wish): Promise<Late> {
    return this.handle<Late>(async (state) => {
      const decided = await this.decideLate(state, wish);
      return decided === "stale" ? { state, reply: "stale" } : this.outcome<Late>(state, decided, "done");
    });
  }

  protected async decide(state: ChatState, wish: Wish): Promise<Change<ChatState>> {
    const decided = await this.decideLate(state, wish);
    if (decided === "stale") throw conflict("The chat has moved on.");
    return decided;
  }

  protected async decideLate(state: ChatState, wish: Wish): Promise<Decided> {
    const { store, clock } = this.parts;
    const count = numbersFor(state, wish as { type: CommandType });
    const first_id = count === 0 ? 0 : await store.reserve("messages", count);
    const decision = transition(state, { ...wish, first_id, now: clock.now() } as Command);
    if (decision.kind === "refused") throw decision.error;
    return decision.kind === "stale" ? "stale" : decision;
  }

  protected outcome<Reply>(
    before: ChatState,
    change: Change<ChatState>,
    reply: Reply,
    patch: ChatPatch = {},
    content: readonly MessagePart[] = [],
  ): Outcome<ChatState, Reply> {
    const { models } = this.parts;
    const find = (id: string) => (models.resolve(id) ?? models.resolve(null))?.id;
    const all = { ...promotedPatch(before, change, find), ...patch };
    const patched = { ...change, state: { ...change.state, ...all } };
    return {
      state: patched.state,
      writes: [
        ...writesOf(before, patched),
        ...patchWrites(before, all),
        ...attachWrites(before.key, content, this.parts.clock.now()),
      ],
      after: () => announce(this.parts, before, patched),
      reply,
    };
  }
}
