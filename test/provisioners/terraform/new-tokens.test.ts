// Tokens that an apply creates are masked although Terraform rewrites its state, their only source, while its lines are read.
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Mask } from "#base/secrets/mask.ts";
import { NewTokens } from "#src/provisioners/terraform/new-tokens.ts";
import { Session } from "#src/provisioners/terraform/session.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { tempDirectory } from "#test/support/server.ts";

const FIRST = "11111111-2222-4333-8444-555555555555";
const SECOND = "99999999-8888-4777-8666-555555555555";
const AGENT_CREATED = `{"type":"apply_complete","hook":{"resource_type":"coder_agent","action":"create"}}`;

const createState = (...tokens: readonly string[]): string => {
  const instances = tokens.map((token) => ({ attributes: { token } }));
  return JSON.stringify({ version: 4, lineage: "a", serial: 2, resources: [{ type: "coder_agent", instances }] });
};

const openStory = async () => {
  const temp = tempDirectory();
  const session = new Session(temp.path);
  mkdirSync(session.work);
  const stateFile = join(session.work, "terraform.tfstate");
  const [mask, clock] = [new Mask(), new ManualClock(0)];
  const tokens = await NewTokens.open({ session, mask, clock, signal: new AbortController().signal });
  return {
    waitForPause: () => clock.timerIn(10),
    reread: () => clock.advance(10),
    write: (state: string) => writeFileSync(stateFile, state),
    show: async (line: string) => {
      await tokens.maskBefore(line);
      return mask.hide(line);
    },
    [Symbol.dispose]: () => temp[Symbol.dispose](),
  };
};

test("[TF-11] a line waits while Terraform is writing the state, and then shows no token", async () => {
  const state = createState(FIRST);
  for (const half of ["", state.slice(0, 50)]) {
    using story = await openStory();
    story.write(half);
    const shown = story.show(`token=${FIRST}`);
    await story.waitForPause();
    story.reread();
    await story.waitForPause();
    story.write(state);
    story.reread();
    expect(await shown).toBe("token=(hidden)");
  }
});

test("[TF-11] a token is hidden in base64, too, although such a line contains nothing that looks like a token", async () => {
  using story = await openStory();
  story.write(createState(FIRST));
  await story.show(AGENT_CREATED);
  await story.show(AGENT_CREATED);
  story.write(createState(FIRST, SECOND));
  expect(await story.show(`token=${btoa(SECOND)}`)).toBe("token=(hidden)");
});

test("[TF-11] a state that stays unreadable delays one line by a second, and lines show nothing that looks like a token", async () => {
  using story = await openStory();
  story.write("{");
  const shown = story.show(`token=${FIRST}`);
  for (let rereads = 0; rereads < 100; rereads++) {
    await story.waitForPause();
    story.reread();
  }
  expect(await shown).toBe("token=(hidden)");
  expect(await story.show(`token=${SECOND}`)).toBe("token=(hidden)");
});

test("[TF-11] identifiers of resources are shown while there is no state, and when all tokens are known", async () => {
  using story = await openStory();
  const line = `created [id=${SECOND}]`;
  expect(await story.show(line)).toBe(line);
  story.write(createState(FIRST));
  expect(await story.show(AGENT_CREATED)).toBe(AGENT_CREATED);
  expect(await story.show(line)).toBe(line);
});
