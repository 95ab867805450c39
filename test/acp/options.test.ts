// The options that an agent offers: Slipway limits how much of them it stores.

import { expect, test } from "bun:test";
import { Questions } from "#actors/chat/acp/questions.ts";
import { applyConfig, readOptions, selectChoice } from "#src/acp/options.ts";

const toSelect = (id: string, values: readonly string[], currentValue = values[0] ?? "") => ({
  type: "select" as const,
  id,
  name: id,
  currentValue,
  options: values.map((value) => ({ value, name: value })),
});

test("[CA-23] omits options and choices with long IDs, and limits names, choices and options", () => {
  const longId = "x".repeat(2_000);
  const ids = Array.from({ length: 300 }, (_, index) => `m${index}`);
  const config = [
    toSelect(longId, ["a"]),
    Object.assign(toSelect("model", [longId, ...ids]), { name: longId, category: longId }),
  ];
  const [option, ...others] = readOptions(undefined, config);
  expect(others).toEqual([]);
  expect(option).toMatchObject({ id: "model", name: "x".repeat(200), category: "x".repeat(200) });
  expect(option?.choices.map(({ id }) => id)).toEqual(ids.slice(0, 200));
  expect(option?.current).toHaveLength(1_024);
  const thirtySelects = Array.from({ length: 30 }, (_, index) => toSelect(`o${index}`, ["a"]));
  expect(readOptions(undefined, thirtySelects)).toHaveLength(20);
});

test("[CA-23] keeps the other options when an agent accepts a choice without returning them", () => {
  const modes = { currentModeId: "ask", availableModes: [{ id: "ask", name: "Ask" }] };
  const options = readOptions(modes, [toSelect("model", ["small", "large"]), toSelect("effort", ["low"])]);
  const chosen = applyConfig(selectChoice(options, "model", "large"), undefined);
  expect(chosen.map(({ id, current }) => [id, current])).toEqual([
    ["mode", "ask"],
    ["model", "large"],
    ["effort", "low"],
  ]);
  expect(applyConfig(chosen, [toSelect("model", ["small"])]).map(({ id }) => id)).toEqual(["mode", "model"]);
});

test("[CA-24] allowing a command applies only to the folder that the question showed", () => {
  const questions = new Questions("/home/dev");
  const allowCommand = (toolCallId: string, args: Record<string, unknown>): void => {
    questions.register({ call: { toolCallId }, isWrite: false, answer: () => {} }, () => false);
    questions.show(toolCallId, { tool_name: "execute", args });
    questions.answer(toolCallId, true, true);
  };
  const useGrant = (args: Record<string, unknown>): boolean => questions.useCallGrant({ tool_name: "execute", args });
  allowCommand("here", { command: "./x.sh" });
  expect(useGrant({ command: "./x.sh", workdir: "/tmp" })).toBe(false);
  expect([1, 2].map(() => useGrant({ command: "./x.sh", workdir: "/home/dev" }))).toEqual([true, false]);
  allowCommand("there", { command: "make", workdir: "/tmp" });
  expect(useGrant({ command: "make" })).toBe(false);
  expect(useGrant({ command: "make", workdir: "/tmp" })).toBe(true);
});
