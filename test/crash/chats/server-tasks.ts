// The server is killed at random moments between the response to a new task and the creation of the task's chat: every acknowledged task
// gets its chat, with its prompt, once (rules TK-1 and TK-2).
import type { Chat, MessagePage } from "#schema/chats/chat.ts";
import type { Task, Tasks } from "#schema/tasks/task.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import { openLocalWorkspaces } from "#test/support/cluster/local-workspaces.ts";
import { usesPostgres } from "#test/support/postgres-server.ts";
import { randomFrom } from "#test/support/random.ts";
import { until } from "#test/support/until.ts";
import { call, read } from "../oracle/calls.ts";
import { findDatabaseProblems } from "../oracle/database.ts";
import { ServerSlot } from "../server.ts";
import { assertNoProblems } from "../server-crash.ts";
import { makeTemplate, signInAdmin, type World } from "../server-world.ts";
import type { CheckOptions } from "../store/store-crash.ts";

const RESOURCES = [{ name: "one", agents: [{ name: "main" }] }];
const ENV = { SLIPWAY_CHAT_TITLES: "false" };

/** Milliseconds within which a task usually gets its chat. */
const BUSY_MS = 1_500;

/** Kills the server `rounds` times, each time after a new task. Returns a one-line summary. */
export const serverTasks = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  const random = randomFrom(seed);
  await using place = await ServerSlot.make();
  await place.start({ env: ENV });
  const world = await signInAdmin(place);
  const { admin } = world;
  await admin.post("/api/v2/chats/providers", { provider: "demo", display_name: "demo", enabled: true });
  const model = { provider: "demo", model: "demo", enabled: true, is_default: true };
  await admin.post("/api/v2/chats/model-configs", model);
  const server = { url: place.client.url, directory: place.directory };
  await using locals = await openLocalWorkspaces({ server, admin }, { ofWorker: usesPostgres });
  const manifest = { ...locals.kind, resources: RESOURCES } as Manifest;
  const template_id = await makeTemplate(world, "tasks", manifest);
  const prompts = new Map<string, string>();
  for (let round = 1; round <= rounds; round++) {
    const input = `echo: round ${round}`;
    const result = await call<Task>(admin, "POST", "/api/v2/tasks/me", { input, template_id, name: `round-${round}` });
    if (result.outcome === "refused")
      assertNoProblems(seed, `round ${round}`, [`refused: ${result.status} ${result.message}`]);
    if (result.outcome === "acknowledged") prompts.set(result.answer.id, input);
    const pause = Math.floor(random() * BUSY_MS);
    await Bun.sleep(pause);
    place.currentProcess.kill("SIGKILL");
    await place.currentProcess.ended;
    log(`round ${round}: killed ${pause} ms after the answer`);
    assertNoProblems(seed, `round ${round}`, await findDatabaseProblems(place.directory));
    await place.start({ env: ENV });
  }
  // A task becomes active when the delivery of its prompt begins, which creates its chat.
  await until(
    async () => (await listTasks(world)).every(({ status, chat_id }) => status === "active" && hasId(chat_id)),
    {
      what: "all tasks to have their prompt",
      timeoutMs: 120_000,
    },
  );
  assertNoProblems(seed, "the end", await findProblems(world, prompts));
  await place.stop();
  return `killed ${rounds} times, ${prompts.size} tasks, none without its prompt and none with two`;
};

const hasId = (chat_id: unknown): boolean => (chat_id as { valid: boolean } | null)?.valid === true;

const listTasks = async ({ admin }: World): Promise<Task[]> => (await read<Tasks>(admin, "/api/v2/tasks")).tasks;

const findProblems = async (world: World, prompts: ReadonlyMap<string, string>): Promise<string[]> => {
  const { admin } = world;
  const tasks = await listTasks(world);
  const chats = await read<Chat[]>(admin, "/api/v2/chats?limit=200");
  const failures: string[] = [];
  if (chats.length !== tasks.length) failures.push(`${tasks.length} tasks have ${chats.length} chats`);
  for (const [id, prompt] of prompts) {
    const task = tasks.find((candidate) => candidate.id === id);
    const chatId = (task?.chat_id as { uuid: string } | undefined)?.uuid;
    const chat = chats.find((candidate) => candidate.id === chatId);
    if (!chat) failures.push(`the task with "${prompt}" has no chat`);
    else {
      const { messages } = await read<MessagePage>(admin, `/api/v2/chats/${chat.id}/messages`);
      const sentPrompts = messages.filter(({ role }) => role === "user").map(({ content }) => content[0]?.text);
      if (sentPrompts.join() !== prompt)
        failures.push(`the chat of "${prompt}" received ${JSON.stringify(sentPrompts)}`);
    }
  }
  return failures;
};
