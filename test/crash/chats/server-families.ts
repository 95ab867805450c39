// The server is killed while a chat with sub-chats is changed repeatedly: its rules, its title, archived and unarchived, in one request. At
// any time, the sub-chats on disk have the rules of their root and are archived with it, and no acknowledged change is lost (rule SB-1).
import type { Chat } from "#schema/chats/chat.ts";
import { type ModelCall, ModelServer } from "#test/support/models/model-server.ts";
import { randomFrom } from "#test/support/random.ts";
import { until } from "#test/support/until.ts";
import { findDatabaseProblems } from "../oracle/database.ts";
import { ServerPlace } from "../server.ts";
import { assertNoProblems } from "../server-crash.ts";
import { signInAdmin } from "../server-world.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";

const CHILDREN = 3;
const OPENING = "START the family";

/** A model that starts the root's sub-chats at its first call, and otherwise does nothing. */
const answer = (call: ModelCall): void => {
  const messages = call.body.messages as { role: string; content: unknown }[];
  const isRoot = JSON.stringify(messages).includes(OPENING);
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

/** Returns the number of the change that a chat shows. */
const rulesIn = ({ permissions }: Chat): number => Number(permissions?.rules[0]?.command?.slice(5) ?? 0);

/** Kills the server `rounds` times around a commit. Returns a one-line summary. */
export const serverFamilies = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  const random = randomFrom(seed);
  await using upstream = await ModelServer.start();
  let isOver = false;
  void (async () => {
    while (!isOver) answer(await upstream.next());
  })();
  await using place = await ServerPlace.make();
  const env = { SLIPWAY_CHAT_TITLES: "false" };
  await place.start({ env });
  const { admin, organization_id } = await signInAdmin(place);
  const provider = { provider: "openai-compat", display_name: "Calls", base_url: `${upstream.url}/v1`, api_key: "key" };
  const { id: provider_id } = await admin.post<{ id: string }>("/api/v2/chats/providers", provider);
  await admin.post("/api/v2/chats/model-configs", { provider_id, model: "calls", is_default: true });
  const content = [{ type: "text", text: OPENING }];
  const { id } = await admin.post<Chat>("/api/v2/chats", { organization_id, content });
  const path = `/api/v2/chats/${id}`;
  await until(
    async () => {
      const { status, children = [] } = await admin.get<Chat>(path);
      return (
        [status, ...children.map((one) => one.status)].join() ===
        Array(CHILDREN + 1)
          .fill("waiting")
          .join()
      );
    },
    { patience: 60_000 },
  );
  let change = 0;
  let acknowledged = 0;
  for (let round = 1; round <= rounds; round++) {
    await place.stop();
    const point = random() < 0.7 ? "after_commit" : "before_commit";
    // After what the server itself writes before it listens.
    const server = await place.start({
      env: { ...env, SLIPWAY_FAILPOINT: `${point}:${5 + Math.floor(random() * 12)}` },
    });
    // A later request may be the one that dies: the last one sent is stored completely or not at all.
    for (;;) {
      const sent = await admin.fetch("PATCH", path, expectedState(change + 1)).catch(() => undefined);
      if (sent?.status !== 204) break;
      change += 1;
      acknowledged += 1;
    }
    const { signal } = await server.ended;
    if (signal !== "SIGKILL") throw new Error(`seed ${seed}: ${point} was not reached`);
    assertNoProblems(seed, `kill ${round}`, await findDatabaseProblems(place.directory));
    await place.start({ env });
    const root = await admin.get<Chat>(path);
    const now = rulesIn(root);
    const problems: string[] = [];
    if (now !== change && now !== change + 1) problems.push(`change ${change} was acknowledged, there is ${now}`);
    const shape = ({ permissions, archived }: Pick<Chat, "permissions" | "archived">) =>
      JSON.stringify({ permissions, archived });
    if (now > 0 && (root.title !== expectedState(now).title || root.archived !== expectedState(now).archived)) {
      problems.push(`the root has the rules of change ${now}, is "${root.title}" and archived: ${root.archived}`);
    }
    const children = root.children ?? [];
    if (children.length !== CHILDREN) problems.push(`${children.length} sub-chats are left`);
    for (const child of children) {
      if (shape(child) !== shape(root)) problems.push(`a sub-chat has ${shape(child)}, its root ${shape(root)}`);
    }
    assertNoProblems(seed, `kill ${round} at ${point}`, problems);
    change = now;
    log(`kill ${round} at ${point}: ${change} changes`);
  }
  await place.stop();
  isOver = true;
  return `${rounds} kills, ${acknowledged} acknowledged changes, every sub-chat with the rules of its root`;
};

export const checks: readonly Check[] = [{ name: "server: families of chats", run: serverFamilies }];
