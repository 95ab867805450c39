// The server is killed at random moments while people write to chats, models behave in every way and followers connect and disconnect.
// Acknowledged messages exist once and in order, no ID is used twice, pending work continues, and every follower ends with the database's
// state (rules CH-16, CH-35 and CH-37; RELIABILITY checks 1 and 19).
import type { Chat, ChatMessage, MessagePage } from "#schema/chats/chat.ts";
import { randomFrom } from "#test/support/random.ts";
import { until } from "#test/support/until.ts";
import { call, read } from "../oracle/calls.ts";
import { findDatabaseProblems } from "../oracle/database.ts";
import { ServerSlot } from "../server.ts";
import { assertNoProblems } from "../server-crash.ts";
import { signInAdmin, type World } from "../server-world.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";
import {
  expediteDeadline,
  findChatProblems,
  findStalled,
  loadStoredChats,
  type PendingChat,
  type StoredChat,
} from "./server-chats-database.ts";
import { UnreliableProvider } from "./server-chats-model.ts";
import { ChatBook, ChatPerson, listOpenCalls } from "./server-chats-people.ts";
import { ChatLedger, ChatReader } from "./server-chats-reader.ts";

const CHATS = 4;
const PEOPLE = 2;
/** Kills per group of chats; then a new group starts, so that histories stay readable. */
const ROUNDS_PER_GROUP = 10;

const addModel = async ({ admin }: World, url: string): Promise<void> => {
  const provider = { provider: "openai-compat", display_name: "Moody", base_url: `${url}/v1`, api_key: "key" };
  const { id } = await admin.post<{ id: string }>("/api/v2/chats/providers", provider);
  await admin.post("/api/v2/chats/model-configs", { provider_id: id, model: "moody", is_default: true });
};

/** Some chats with their people and followers. */
class Group {
  readonly books: ChatBook[] = [];
  readonly people: ChatPerson[] = [];
  readonly readers: ChatReader[] = [];
  readonly ledgers: ChatLedger[] = [];
  answers = 0;
  readonly #world: World;
  readonly #working: Promise<void>[] = [];
  readonly #reading: Promise<void>[] = [];
  #stored = new Map<string, StoredChat>();

  private constructor(world: World) {
    this.#world = world;
  }

  static async make(world: World, name: string, random: () => number): Promise<Group> {
    const group = new Group(world);
    const { admin, organization_id } = world;
    const unsafe_dynamic_tools = [{ name: "ask", description: "asks", input_schema: { type: "object" } }];
    for (let n = 0; n < CHATS; n++) {
      const content = [{ type: "text", text: `chat ${n} of ${name}` }];
      const { id } = await admin.post<Chat>("/api/v2/chats", { organization_id, content, unsafe_dynamic_tools });
      const book = new ChatBook(id, n % 2 === 0);
      const ledger = new ChatLedger();
      group.books.push(book);
      group.ledgers.push(ledger);
      for (let person = 0; person < PEOPLE; person++) {
        group.people.push(new ChatPerson(admin, book, `${name}c${n}p${person}`, random, () => (group.answers += 1)));
      }
      for (const transport of ["websocket", "events"] as const) {
        group.readers.push(new ChatReader({ client: admin, chat: id, ledger, resumes: book.isOrderly, transport }));
      }
    }
    group.#working.push(...group.people.map((person) => person.run()));
    group.#reading.push(...group.readers.map((reader) => reader.run()));
    return group;
  }

  /** Returns problems in what the killed server has stored. */
  async checkStored(directory: string): Promise<string[]> {
    const before = this.#stored;
    this.#stored = await loadStoredChats(
      directory,
      this.books.map(({ id }) => id),
    );
    return [
      ...this.books.flatMap((book) => findChatProblems(book, this.#stored.get(book.id), before.get(book.id))),
      ...this.people.flatMap(({ problems }) => problems),
      ...this.ledgers.flatMap(({ problems }) => problems),
    ];
  }

  /** Returns the chats whose work the next server has to continue. Moves some deadlines closer. */
  async listPending(directory: string, random: () => number): Promise<PendingChat[]> {
    const pending: PendingChat[] = [];
    for (const { chat } of this.#stored.values()) {
      if (chat.archived) continue;
      if (chat.status === "requires_action" && random() >= 0.3) {
        await expediteDeadline(directory, chat.id, Math.floor(random() * 300));
        pending.push(chat);
      } else if (chat.status === "running" || chat.status === "interrupting") pending.push(chat);
    }
    return pending;
  }

  /** Stops all writes and waits until everything is idle and every follower has the database's state. */
  async settle(): Promise<string[]> {
    for (const person of this.people) person.stop();
    await Promise.all(this.#working);
    for (const book of this.books) await until(() => this.#driveToIdle(book), { timeoutMs: 120_000 });
    const problems: string[] = [];
    for (const { id } of this.books) {
      const expected = await this.#describeStored(id);
      for (const reader of this.readers.filter(({ options }) => options.chat === id)) {
        const describeReader = () => JSON.stringify([reader.status, reader.queue, reader.history]);
        await until(async () => describeReader() === expected).catch(() => {
          problems.push(
            `a follower of ${id} by ${reader.options.transport} ends with ${describeReader()} instead of ${expected}`,
          );
        });
      }
    }
    for (const reader of this.readers) reader.stop();
    await Promise.all(this.#reading);
    return problems;
  }

  /** Answers calls, and unarchives the chat, so that it can finish. Returns true when it is idle. */
  async #driveToIdle(book: ChatBook): Promise<boolean> {
    const { admin } = this.#world;
    const { status, archived } = await read<Chat>(admin, book.path);
    if (archived) await call(admin, "PATCH", book.path, { archived: false });
    if (status === "requires_action") {
      const { messages } = await read<MessagePage>(admin, `${book.path}/messages?limit=50`);
      const results = listOpenCalls(messages).map((tool_call_id) => ({ tool_call_id, output: 1 }));
      await call(admin, "POST", `${book.path}/tool-results`, { results });
    }
    return !archived && (status === "waiting" || status === "error");
  }

  async #describeStored(id: string): Promise<string> {
    const path = `/api/v2/chats/${id}`;
    const { status } = await read<Chat>(this.#world.admin, path);
    const { queued_messages } = await read<MessagePage>(this.#world.admin, `${path}/messages`);
    const history: ChatMessage[] = [];
    for (let hasMore = true; hasMore; ) {
      const after = history.at(-1)?.id ?? 0;
      const page = await read<MessagePage>(this.#world.admin, `${path}/messages?limit=200&after_id=${after}`);
      history.push(...page.messages);
      hasMore = page.has_more;
    }
    return JSON.stringify([status, queued_messages, history]);
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

/** Kills the server `rounds` times. Returns a one-line summary. */
export const serverChats = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  const random = randomFrom(seed);
  await using place = await ServerSlot.make();
  await using provider = await UnreliableProvider.start(random);
  let server = await place.start();
  const world = await signInAdmin(place);
  await addModel(world, provider.server.url);
  const groups: Group[] = [];
  const continued = { running: 0, interrupting: 0, requires_action: 0 } as Record<string, number>;
  for (let round = 1; round <= rounds; round++) {
    let group = groups.at(-1);
    if (!group || round % ROUNDS_PER_GROUP === 1) {
      provider.isCalm = false;
      group = await Group.make(world, `g${groups.length}`, random);
      groups.push(group);
    }
    const answersBefore = group.answers;
    const answerCount = 20 + Math.floor(random() * (rounds < ROUNDS_PER_GROUP ? 60 : 200));
    const current = group;
    await until(async () => current.answers - answersBefore >= answerCount, { timeoutMs: 60_000 });
    for (const reader of group.readers) if (random() < 0.2) reader.drop();
    await Bun.sleep(random() * 10);
    server.kill("SIGKILL");
    await server.ended;
    assertNoProblems(seed, `kill ${round}`, await findDatabaseProblems(place.directory));
    assertNoProblems(seed, `kill ${round}`, [...(await group.checkStored(place.directory)), ...provider.problems]);
    const pending = await group.listPending(place.directory, random);
    server = await place.start();
    await until(async () => (await findStalled(place.directory, pending)).length === 0).catch(async () => {
      const stalled = await findStalled(place.directory, pending);
      assertNoProblems(
        seed,
        `kill ${round}`,
        stalled.map(({ id, status }) => `${id} is still ${status}`),
      );
    });
    for (const { status } of pending) continued[status] = (continued[status] ?? 0) + 1;
    log(`kill ${round}: ${group.answers} answers, ${pending.length} chats continued`);
    if (round % ROUNDS_PER_GROUP !== 0 && round < rounds) continue;
    provider.calm();
    assertNoProblems(seed, `the end of group ${groups.length}`, await group.settle());
    assertNoProblems(seed, `the end of group ${groups.length}`, [
      ...group.ledgers.flatMap(({ problems }) => problems),
      ...provider.problems,
    ]);
  }
  await place.stop();
  for (const group of groups) assertNoProblems(seed, "the end", await group.checkStored(place.directory));
  assertNoProblems(seed, "the end", await findDatabaseProblems(place.directory));
  const sent = groups.flatMap(({ books }) => books.flatMap((book) => book.sent));
  const acknowledged = sent.filter(({ outcome }) => outcome === "acknowledged").length;
  const commands = sum(groups.map(({ answers }) => answers));
  const connections = sum(groups.flatMap(({ readers }) => readers.map((reader) => reader.connections)));
  return (
    `${rounds} kills, ${commands} commands, ${acknowledged} acknowledged messages, none lost or duplicated; ${continued.running} running, ` +
    `${continued.interrupting} interrupting and ${continued.requires_action} awaiting chats continued; ${connections} connections of followers`
  );
};

export const checks: readonly Check[] = [{ name: "server: chats", run: serverChats }];
