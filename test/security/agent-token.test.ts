// The agent's token is not in the environment of any process that agents and people start in a workspace: a simple `env` would print it
// into logs, terminals and chats.
import { expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TestTerminal } from "#test/api/agents/reach.ts";
import { forFile } from "#test/support/for-file.ts";
import { describeInProcess } from "#test/support/in-process.ts";
import { until } from "#test/support/until.ts";
import { callTools, Follower, listMessages, openChat, openToolWorld } from "#test/tools/world.ts";

const world = await forFile(
  openToolWorld({
    seed: { scripts: [{ script: 'echo $$ > "$HOME/script"; exec sleep 1000', run_on_start: true }] },
  }),
);

/** Returns the environment of the process whose ID a program has written to this file in the home folder. */
const readEnvironment = async (name: string): Promise<string> => {
  const file = join(world.home, name);
  const pid = await until(() => existsSync(file) && readFileSync(file, "utf8").trim());
  // The environment is empty while the process executes another program.
  return until(() => readFileSync(`/proc/${pid}/environ`, "latin1"));
};

const expectNoToken = (environment: string): void => {
  expect(environment).toContain("SLIPWAY_AGENT_URL=");
  expect(environment).not.toContain(world.seeded.agent_token);
  const [, file = ""] = /(?:^|\0)SLIPWAY_AGENT_TOKEN_FILE=([^\0]*)/.exec(environment) ?? [];
  expect(readFileSync(file, "utf8").trim()).toBe(world.seeded.agent_token);
};

describeInProcess("[DM-20] the agent's token is not in the environment", () => {
  test("[DM-20] of a start script", async () => expectNoToken(await readEnvironment("script")));

  test("[DM-20] of a shell in a terminal", async () => {
    const path = (action: string) => `/api/v2/workspaceagents/${world.seeded.agent_id}/${action}`;
    using terminal = await TestTerminal.open({ owner: world.owner, path });
    terminal.sendInput({ data: 'echo $$ > "$HOME/shell"\n' });
    expectNoToken(await readEnvironment("shell"));
  });

  test("[DM-20] of a chat's commands, which still reach the agent's endpoints through the file", async () => {
    const { call } = await openChat(world);
    const command = `echo $$ > "$HOME/tool"; env; curl -s -o /dev/null -w '%{http_code}' -H "Service-Session-Token: $(cat "$SLIPWAY_AGENT_TOKEN_FILE")" "\${SLIPWAY_AGENT_URL}api/v2/workspaceagents/me/gitsshkey"`;
    const { results } = await callTools(world, call, ["execute", { command, timeout: "60s" }]);
    const output = results[0]?.output ?? "";
    expect(output).toContain("SLIPWAY_WORKSPACE_AGENT_ID=");
    expect(output).not.toContain(world.seeded.agent_token);
    expect(output).toEndWith("200");
  });

  test("[TO-21] a chat that reads secrets sees none of them, complete or in parts, and none is stored or sent", async () => {
    const { agent_token, owner_token } = world.seeded;
    const { id, call } = await openChat(world);
    using follower = await Follower.open(world.owner, id);
    writeFileSync(join(world.home, "session"), `${owner_token}\n`);
    const file = '"$SLIPWAY_AGENT_TOKEN_FILE"';
    const command = `head -c 20 ${file}; sleep 0.3; tail -c +21 ${file}; sleep 0.3; head -c 5 session; sleep 0.3; tail -c +6 session`;
    const { results, next } = await callTools(
      world,
      call,
      ["execute", { command: `cat ${file} session`, timeout: "60s" }],
      ["execute", { command: command, timeout: "60s" }],
      ["read_file", { path: "session" }],
      ["execute", { command: "echo done; exit 3", timeout: "60s" }],
    );
    expect(results.slice(0, 2).map(({ output }) => output)).toEqual(["[hidden]\n[hidden]\n", "[hidden]\n[hidden]\n"]);
    expect(JSON.stringify(results[2])).toContain("[hidden]");
    expect(results[3]).toMatchObject({ output: "done\n", exit_code: 3 });
    next.finish("stop");
    const everything = JSON.stringify([follower.events, await listMessages(world.owner, id), next.request.messages]);
    expect(everything).toContain("[hidden]");
    for (const secret of [agent_token, owner_token, owner_token.slice(11)]) expect(everything).not.toContain(secret);
  });
});
