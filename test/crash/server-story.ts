// A chat works on a git repository in a real local workspace (test/support/models/coding-model.ts) while its server is killed at random
// points: the repository always ends in the same state, no command runs twice, and the history equals that of a run without kills (rule
// EE-2).
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Chat, ChatMessage, MessagePage } from "#schema/chats/chat.ts";
import type { Template } from "#schema/templates/template.ts";
import { CodingModel, makeOrigin } from "#test/support/models/coding-model.ts";
import { randomFrom } from "#test/support/random.ts";
import { until } from "#test/support/until.ts";
import { read } from "./oracle/calls.ts";
import { findDatabaseProblems } from "./oracle/database.ts";
import { ServerSlot } from "./server.ts";
import { assertNoProblems } from "./server-crash.ts";
import { makeWorkspace, signInAdmin, type World } from "./server-world.ts";
import type { Check, CheckOptions } from "./store/store-crash.ts";

/** Tests count the calls to models, so no titles are requested. */
export const STORY_ENV = { SLIPWAY_CHAT_TITLES: "false" };
const STEPS = 8;

/**
 * Opens a server whose chats use the model at the URL that `begin` returns, with a running local workspace called story. `prepare` runs as
 * an administrator before the workspace is created.
 */
export const openChatServer = async (
  begin: (place: ServerSlot, stack: AsyncDisposableStack) => Promise<string>,
  env: Record<string, string> = STORY_ENV,
  prepare: (world: World) => Promise<void> = async () => {},
) => {
  await using stack = new AsyncDisposableStack();
  const place = stack.use(await ServerSlot.make());
  const base_url = await begin(place, stack);
  await place.start({ env });
  const world = await signInAdmin(place);
  const { admin } = world;
  const provider = { provider: "openai-compat", display_name: "Coder", base_url, api_key: "k" };
  const { id } = await admin.post<{ id: string }>("/api/v2/chats/providers", provider);
  await admin.post("/api/v2/chats/model-configs", { provider_id: id, model: "coder", is_default: true });
  await prepare(world);
  const workspace = await makeWorkspace(admin, "story", await findLocalTemplate(world));
  await until(async () => {
    const { latest_build } = await read<typeof workspace>(admin, `/api/v2/workspaces/${workspace.id}`);
    return latest_build.resources[0]?.agents[0]?.status === "connected";
  });
  const home = join(place.directory, "workspaces", workspace.id, "home");
  const resources = stack.move();
  return { place, world, workspace_id: workspace.id, home, [Symbol.asyncDispose]: () => resources.disposeAsync() };
};

/** Opens a server with the coding model. No message has been sent yet. */
export const openStory = async () => {
  let model: CodingModel | undefined;
  const opened = await openChatServer(async (place, stack) => {
    const origin = join(place.scratch, "origin");
    await makeOrigin(origin);
    model = stack.use(await CodingModel.start(origin));
    return `${model.server.url}/v1`;
  });
  return { ...opened, model: model as CodingModel };
};

/** Returns the built-in template, which a new installation has after its import. */
const findLocalTemplate = async ({ admin }: World): Promise<string> => {
  let id: string | undefined;
  await until(async () => {
    id = (await read<Template[]>(admin, "/api/v2/templates")).find(({ name }) => name === "local")?.id;
    return id !== undefined;
  });
  return id as string;
};

export type Story = Awaited<ReturnType<typeof openStory>>;

export const startChat = ({ world, workspace_id }: Story, text: string): Promise<Chat> => {
  const { admin, organization_id } = world;
  return admin.post("/api/v2/chats", { organization_id, workspace_id, content: [{ type: "text", text }] });
};

/** Returns problems with the folder after the work. The first call sets `head`; all others must have the same result. */
export const findRepositoryProblems = async (
  home: string,
  name: string,
  head: { output?: string },
): Promise<string[]> => {
  const script = "git rev-parse HEAD && git status --porcelain && git fsck --strict && git show HEAD:sum.sh";
  const child = Bun.spawn(["sh", "-c", script], { cwd: join(home, name), stdout: "pipe", stderr: "pipe" });
  const output = `${await new Response(child.stdout).text()}${(await child.exited) === 0 ? "" : await new Response(child.stderr).text()}`;
  head.output ??= output;
  const runs = existsSync(join(home, `runs-${name}`)) ? readFileSync(join(home, `runs-${name}`), "utf8") : "";
  return [
    ...(/^[0-9a-f]{40}\necho \$\(\(\$1 \+ \$2\)\)\n$/.test(output) ? [] : [`${name} ends with ${output}`]),
    ...(output === head.output ? [] : [`${name} ends with ${output} and not with ${head.output}`]),
    ...(runs === "run\nrun\n" ? [] : [`the tests of ${name} ran as ${JSON.stringify(runs)}`]),
  ];
};

/** Describes the messages without anything that depends on time. */
export const outlineMessages = (messages: readonly ChatMessage[]): string =>
  messages
    .toSorted((a, b) => a.id - b.id)
    .map(({ role, content }) => {
      const parts = content.map((part) => part.text ?? `${part.type} ${part.tool_call_id} ${part.is_error ?? ""}`);
      return `${role}: ${parts.join(" | ")}`;
    })
    .join("\n");

const listMessages = async ({ admin }: World, id: string): Promise<ChatMessage[]> =>
  (await read<MessagePage>(admin, `/api/v2/chats/${id}/messages?limit=200`)).messages;

const isIdle = async ({ admin }: World, id: string): Promise<boolean> => {
  const { status } = await read<Chat>(admin, `/api/v2/chats/${id}`);
  return status === "waiting" || status === "error";
};

/** Kills the server once in each of `rounds` chats. Returns a one-line summary. */
export const serverStory = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  const random = randomFrom(seed);
  await using story = await openStory();
  const { place, model, world, home } = story;
  const head: { output?: string } = {};
  const steps = new Map<number, number>();
  let outline = "";
  for (let round = 0; round <= rounds; round++) {
    const name = `work-${round}`;
    const killed = Promise.withResolvers<void>();
    // The first round is not interrupted.
    const fatalStep = round === 0 ? -1 : Math.floor(random() * STEPS);
    const delayMs = random() * (random() < 0.5 ? 15 : 200);
    model.onStep = (step) => {
      if (step !== fatalStep) return;
      model.onStep = () => {};
      setTimeout(() => {
        place.currentProcess.kill("SIGKILL");
        killed.resolve();
      }, delayMs);
    };
    const { id } = await startChat(story, `Fix ${name}`);
    if (fatalStep >= 0) {
      await killed.promise;
      await place.currentProcess.ended;
      assertNoProblems(seed, `kill ${round}`, await findDatabaseProblems(place.directory));
      await place.start({ env: STORY_ENV });
      steps.set(fatalStep, (steps.get(fatalStep) ?? 0) + 1);
    }
    await until(() => isIdle(world, id), { timeoutMs: 120_000 });
    const actualOutline = outlineMessages(await listMessages(world, id)).replace(name, "work");
    if (round === 0) outline = actualOutline;
    log(`kill ${round}: ${delayMs.toFixed(0)} ms into step ${fatalStep}`);
    assertNoProblems(seed, `kill ${round} (${delayMs.toFixed(0)} ms into step ${fatalStep})`, [
      ...model.problems,
      ...(await findRepositoryProblems(home, name, head)),
      ...(actualOutline === outline ? [] : [`the history is ${actualOutline} and not ${outline}`]),
    ]);
  }
  await place.stop();
  assertNoProblems(seed, "the end", await findDatabaseProblems(place.directory));
  const killsByStep = [...steps].sort(([a], [b]) => a - b).map(([step, count]) => `${count} in step ${step}`);
  return `${rounds} kills (${killsByStep.join(", ")}): the same repository and the same history every time, no command run twice`;
};

export const checks: readonly Check[] = [{ name: "server: a chat that codes", run: serverStory }];
