// The options that an agent offers, as Slipway stores them: bounded, whatever the agent sends.

import { expect, test } from "bun:test";
import { Questions } from "#actors/chat/acp/questions.ts";
import { applyConfig, readOptions, selectChoice } from "#src/acp/options.ts";

const select = (id: string, values: readonly string[], currentValue = values[0] ?? "") => ({
  type: "select" as const,
  id,
  name: id,
  currentValue,
  options: values.map((value) => ({ value, name: value })),
});

test("[CA-23] options and choices whose IDs are too long are left out, and the rest is bounded", () => {
  const long = "x".repeat(2_000);
  const many = Array.from({ length: 300 }, (_, index) => `m${index}`);
  const config = [select(long, ["a"]), Object.assign(select("model", [long, ...many]), { name: long, category: long })];
  const [option, ...others] = readOptions(undefined, config);
  expect(others).toEqual([]);
  expect(option).toMatchObject({ id: "model", name: "x".repeat(200), category: "x".repeat(200) });
  expect(option?.choices.map(({ id }) => id)).toEqual(many.slice(0, 200));
  expect(option?.current).toHaveLength(1_024);
  expect(
    readOptions(
      undefined,
      Array.from({ length: 30 }, (_, index) => select(`o${index}`, ["a"])),
    ),
  ).toHaveLength(20);
});

test("[CA-23] an agent that accepts a choice without returning its options keeps the others", () => {
  const modes = { currentModeId: "ask", availableModes: [{ id: "ask", name: "Ask" }] };
  const options = readOptions(modes, [select("model", ["small", "large"]), select("effort", ["low"])]);
  const chosen = applyConfig(selectChoice(options, "model", "large"), undefined);
  expect(chosen.map(({ id, current }) => [id, current])).toEqual([
    ["mode", "ask"],
    ["model", "large"],
    ["effort", "low"],
  ]);
  expect(applyConfig(chosen, [select("model", ["small"])]).map(({ id }) => id)).toEqual(["mode", "model"]);
});

test("[CA-24] allowing a command applies only to the folder that the question showed", () => {
  const questions = new Questions("/home/dev");
  const allow = (toolCallId: string, args: Record<string, unknown>): void => {
    questions.register({ call: { toolCallId }, isWrite: false, answer: () => {} }, () => false);
    questions.show(toolCallId, { tool_name: "execute", args });
    questions.answer(toolCallId, true, true);
  };
  const isAllowed = (args: Record<string, unknown>) => questions.useCallGrant({ tool_name: "execute", args });
  allow("here", { command: "./x.sh" });
  expect(isAllowed({ command: "./x.sh", workdir: "/tmp" })).toBe(false);
  expect([1, 2].map(() => isAllowed({ command: "./x.sh", workdir: "/home/dev" }))).toEqual([true, false]);
  allow("there", { command: "make", workdir: "/tmp" });
  expect(isAllowed({ command: "make" })).toBe(false);
  expect(isAllowed({ command: "make", workdir: "/tmp" })).toBe(true);
});
