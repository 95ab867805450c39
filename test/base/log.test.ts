// The format of log lines, and the lines that are not written.
import { afterEach, expect, test } from "bun:test";
import { configureLogging, log, resetLogging } from "#base/log.ts";

let lines: string[] = [];
const write = (line: string) => {
  lines.push(line);
};

afterEach(() => {
  resetLogging();
  lines = [];
});

test("[CF-10] JSON: one object per line, and a property cannot replace the level", () => {
  configureLogging({ level: "info", format: "json", write });
  log("db").warn("opened {path}", { path: "/x\n", level: "fake", bytes: new Uint8Array(3), big: 7n });
  expect(lines).toHaveLength(1);
  expect(lines[0]).toEndWith("}\n");
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ level: "warn", area: "db", bytes: "3 bytes", big: "7" });
});

test("[CF-10] JSON: an error shows its name, message, stack and cause", () => {
  configureLogging({ level: "info", format: "json", write });
  log("http").error("failed", { error: new TypeError("outer", { cause: new Error("inner") }) });
  const { error } = JSON.parse(lines[0] ?? "");
  expect(error).toMatchObject({ name: "TypeError", message: "outer", cause: { message: "inner" } });
  expect(error.stack).toContain("log.test.ts");
});

test("[CF-10] text: one line for people, with control characters from outside replaced", () => {
  configureLogging({ level: "debug", format: "text", write });
  log("agent").debug("connected", { name: "a b\u001b[2J", id: "x1" });
  expect(lines[0]).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z DEBUG agent: connected name="a b\S+" id=x1\n$/);
  expect(lines[0]).not.toContain("\u001b");
  log("agent").debug("reordered \u202e and a line\u2028break");
  expect(lines[1]).toEndWith("reordered \ufffd and a line\ufffdbreak\n");
});

test("[CF-10] lines below the level, and lines before the log is configured, are not written", () => {
  log("db").error("before the configuration");
  configureLogging({ level: "warn", format: "text", write });
  log("db").info("below the level");
  log("db").warning("written");
  expect(lines.map((line) => line.includes("written"))).toEqual([true]);
});
