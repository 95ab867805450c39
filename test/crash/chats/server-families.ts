// The server is killed while a chat with sub-chats is changed repeatedly: each request changes its rules and its title, and archives or
// unarchives it. At any time, the stored sub-chats have the rules of their root and are archived with it, and no acknowledged change is
// lost (rule SB-1).
import type { Chat } from "#schema/chats/chat.ts";
import { type ModelCall, ModelServer } from "#test/support/models/model-server.ts";
import { randomFrom } from "#test/support/random.ts";
import { until } from "#test/support/until.ts";
import { findDatabaseProblems } from "../oracle/database.ts";
import { ServerSlot } from "../server.ts";
import { assertNoProblems } from "../server-crash.ts";
import { signInAdmin } from "../server-world.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";

const CHILDREN = 3;
const ROOT_PROMPT = "START the family";

/** A model that starts the root's sub-chats at its first call, and otherwise does nothing. */
const answerCall = (call: ModelCall): void => {
  const messages = call.body.messages as { role: string; content: unknown }[];
  const isRoot = JSON.stringify(messages).includes(ROOT_PROMPT);
  if (!isRoot || messages.some(({ role }) => role === "tool")) {
    call.say({ text: "done" }, { finish: "stop" }).end();
    return;
  }
  for (let n = 0; n < CHILDREN; n++) {
    const args = JSON.stringify({ type: "general", prompt: `task ${n}` });
    call.say({ call: { id: `spawn-${n}`, name: "spawn_agent", args } });
  }
  call.say({ finish: "tool_calls" }).end();
};

/** The family's expected state after the n-th change. */
const expectedState = (n: number) => ({
  archived: n % 2 === 1,
  title: `change ${n}`,
  permissions: { default: "allow", rules: [{ tool: "execute", command: `tool-${n}`, action: "deny" }] },
});

/** Returns the number of the change that a chat's rules are from. */
const readChangeNumber = ({ permissions }: Chat): number => Number(permissions?.rules[0]?.command?.slice(5) ?? 0);

/** Kills the server `rounds` times around a commit. Returns a one-line summary. */
export const serverFamilies = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  const random = randomFrom(seed);
  await using upstream = await ModelServer.start();
  let isFinished = false;
  void (async () => {
    while (!isFinished) answerCall(await upstream.next());
  })();
  await using place = await ServerSlot.make();
  const env = { SLIPWAY_CHAT_TITLES: "false" };
  await place.start({ env });
  const { admin, organization_id } = await signInAdmin(place);
  const provider = { provider: "openai-compat", display_name: "Calls", base_url: `${upstream.url}/v1`, api_key: "key" };
  const { id: provider_id } = await admin.post<{ id: string }>("/api/v2/chats/providers", provider);
  await admin.post("/api/v2/chats/model-configs", { provider_id, model: "calls", is_default: true });
  const content = [{ type: "text", text: ROOT_PROMPT }];
  const { id } = await admin.post<Chat>("/api/v2/chats", { organization_id, content });
  const path = `/api/v2/chats/${id}`;
  await until(
    async () => {
      const { status, children = [] } = await admin.get<Chat>(path);
      return (
        [status, ...children.map((child) => child.status)].join() ===
        Array(CHILDREN + 1)
          .fill("waiting")
          .join()
      );
    },
    { timeoutMs: 60_000 },
  );
  let change = 0;
  let acknowledged = 0;
  for (let round = 1; round <= rounds; round++) {
    await place.stop();
    const point = random() < 0.7 ? "after_commit" : "before_commit";
    // The first commits belong to the server's start.
    const server = await place.start({
      env: { ...env, SLIPWAY_FAILPOINT: `${point}:${5 + Math.floor(random() * 12)}` },
    });
    // Any of the next requests may be the one that dies. The last request is stored completely or not at all.
    for (;;) {
      const response = await admin.fetch("PATCH", path, expectedState(change + 1)).catch(() => undefined);
      if (response?.status !== 204) break;
      change += 1;
      acknowledged += 1;
    }
    const { signal } = await server.ended;
    if (signal !== "SIGKILL") throw new Error(`seed ${seed}: ${point} was not reached`);
    assertNoProblems(seed, `kill ${round}`, await findDatabaseProblems(place.directory));
    await place.start({ env });
    const root = await admin.get<Chat>(path);
    const storedChange = readChangeNumber(root);
    const problems: string[] = [];
    if (storedChange !== change && storedChange !== change + 1)
      problems.push(`change ${change} was acknowledged, but ${storedChange} is stored`);
    const describeRules = ({ permissions, archived }: Pick<Chat, "permissions" | "archived">) =>
      JSON.stringify({ permissions, archived });
    if (
      storedChange > 0 &&
      (root.title !== expectedState(storedChange).title || root.archived !== expectedState(storedChange).archived)
    ) {
      problems.push(
        `the root has the rules of change ${storedChange}, is "${root.title}" and archived: ${root.archived}`,
      );
    }
    const children = root.children ?? [];
    if (children.length !== CHILDREN) problems.push(`${children.length} sub-chats exist`);
    for (const child of children) {
      if (describeRules(child) !== describeRules(root))
        problems.push(`a sub-chat has ${describeRules(child)}, its root ${describeRules(root)}`);
    }
    assertNoProblems(seed, `kill ${round} at ${point}`, problems);
    change = storedChange;
    log(`kill ${round} at ${point}: ${change} changes`);
  }
  await place.stop();
  isFinished = true;
  return `${rounds} kills, ${acknowledged} acknowledged changes, every sub-chat with the rules of its root`;
};

export const checks: readonly Check[] = [{ name: "server: families of chats", run: serverFamilies }];
