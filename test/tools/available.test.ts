// The table of tools by kind of chat, and what a waiting call shows of a sub-chat's messages: pure parts.
import { expect, test } from "bun:test";
import { basename } from "node:path";
import { SubagentText } from "#actors/chat/subagents/text.ts";
import { toChatMode } from "#actors/chat/turn/offer.ts";
import { StreamBuffer } from "#actors/chat/turn/stream-buffer.ts";
import { CHAT_MODES, type ChatMode, toPlanPath } from "#src/tools/available.ts";
import { findLimit, lookUpUse, serverToolNames, toolsFor } from "#src/tools/registry.ts";

const of = (mode: ChatMode, has_workspace = true) => ({ mode, has_workspace, plan_path: toPlanPath("chat") });
const namesFor = (mode: ChatMode, has_workspace = true) => toolsFor(of(mode, has_workspace)).map(({ name }) => name);

const WORKSPACE = "read_file write_file edit_files execute process_output process_list process_signal".split(" ");
const TEMPLATES = ["list_templates", "read_template", "create_workspace"];
const AGENTS = "spawn_agent wait_agent message_agent interrupt_agent list_agents list_subagent_models".split(" ");

test("[SB-2] [PM-2] each kind of chat has exactly its own tools", () => {
  expect(namesFor("root")).toEqual(
    expect.arrayContaining([...WORKSPACE, ...TEMPLATES, "start_workspace", "stop_workspace", ...AGENTS]),
  );
  expect(namesFor("root", false)).toEqual(expect.arrayContaining([...TEMPLATES, ...AGENTS]));
  const planning = ["read_file", "write_file", "edit_files", "execute", "process_output", ...AGENTS];
  expect(namesFor("plan")).toEqual(expect.arrayContaining([...planning, "propose_plan", "ask_user_question"]));
  expect(namesFor("general")).toEqual(expect.arrayContaining(WORKSPACE));
  expect(namesFor("computer_use")).toEqual(expect.arrayContaining([...WORKSPACE, "computer"]));
  expect(namesFor("explore")).toEqual(expect.arrayContaining(["read_file", "execute", "process_output"]));
  const never: Record<ChatMode, string[]> = {
    root: ["propose_plan", "ask_user_question", "computer"],
    plan: [...TEMPLATES, "start_workspace", "stop_workspace", "process_list", "process_signal"],
    general: [
      "computer",
      ...TEMPLATES,
      "start_workspace",
      "stop_workspace",
      ...AGENTS,
      "propose_plan",
      "ask_user_question",
    ],
    explore: [...TEMPLATES, ...AGENTS, "write_file", "edit_files", "process_signal", "propose_plan", "computer"],
    computer_use: [...TEMPLATES, ...AGENTS, "propose_plan"],
  };
  for (const mode of CHAT_MODES) {
    expect(namesFor(mode).filter((name) => never[mode].includes(name))).toEqual([]);
    expect(namesFor(mode, false).filter((name) => WORKSPACE.includes(name))).toEqual([]);
    // Client tools are for people's chats, and not available in plan mode.
    expect(lookUpUse("dynamic", of(mode))).toBe(mode === "root" ? "yes" : "no");
    expect(lookUpUse("toString", of(mode))).toBe("no");
  }
});

test("[PM-3] while a chat plans only its plan is written and only exploring agents are started", () => {
  const path = toPlanPath("chat");
  const edit = (...paths: string[]) => ({ files: paths.map((one) => ({ path: one, edits: [] })) });
  const plan = of("plan");
  expect(findLimit("write_file", { path, content: "" }, plan)).toBeUndefined();
  expect(findLimit("edit_files", edit(path, path), plan)).toBeUndefined();
  for (const other of ["a.md", `${path}/../x.md`, `./${path}`, ` ${path}`, ""]) {
    expect(findLimit("write_file", { path: other, content: "" }, plan)).toContain(path);
    expect(findLimit("edit_files", edit(path, other), plan)).toContain(path);
  }
  expect(findLimit("spawn_agent", { type: "explore", prompt: "x" }, plan)).toBeUndefined();
  expect(findLimit("spawn_agent", { type: "general", prompt: "x" }, plan)).toContain("explore");
  for (const mode of ["root", "general"] as const) {
    expect(findLimit("write_file", { path: "a.md", content: "" }, of(mode))).toBeUndefined();
  }
});

test("[PM-1] a chat plans while it says so; a sub-chat that is told to plan only looks around", () => {
  const about = { owner_id: "", organization_id: "", workspace_id: null };
  const mode = (is_root: boolean, plan_mode: "plan" | null, subagent_type: "general" | "explore" | null) =>
    toChatMode({ ...about, is_root, plan_mode, subagent_type });
  expect([mode(true, null, null), mode(true, "plan", null)]).toEqual(["root", "plan"]);
  expect([mode(false, null, "general"), mode(false, null, "explore"), mode(false, "plan", "general")]).toEqual([
    ...(["general", "explore", "explore"] as const),
  ]);
});

test("[SB-5] whatever is heard twice, late or of an older message, the waiting call shows the newest message once", () => {
  const said: string[] = [];
  const text = new SubagentText({ write: (more) => said.push(more), reset: () => said.push("<reset>") });
  const buffer = (history_version: number, ...parts: string[]) => {
    const made = new StreamBuffer("chat", { history_version, generation_attempt: 1 }, () => {});
    for (const part of parts) made.push({ type: "text", text: part });
    made.push({ type: "reasoning", text: "hm" });
    return made.copy();
  };
  const first = buffer(1, "a", "b", "c");
  text.add({ ...first, events: first.events.slice(0, 2) });
  text.add(first);
  text.add({ ...first, first_seq: 3, events: first.events.slice(2) });
  text.add(buffer(2));
  text.add(buffer(3, "d"));
  text.add(first);
  expect(said).toEqual(["a", "b", "c", "<reset>", "d"]);
});

test("[SB-2] each tool is in a file of its name with its description alongside, and some chat has it", () => {
  const files = new Set(
    [...new Bun.Glob("**/*").scanSync(`${import.meta.dir}/../../src/tools`)].map((file) => basename(file)),
  );
  const had = new Set(CHAT_MODES.flatMap((mode) => namesFor(mode)));
  for (const name of serverToolNames()) {
    const file = name.replaceAll("_", "-");
    expect([name, had.has(name), files.has(`${file}.ts`), files.has(`${file}.txt`)]).toEqual([name, true, true, true]);
  }
  // A file with a description is a tool, which its row in TOOLS of registry.ts gives to chats.
  const described = [...files]
    .filter((file) => file.endsWith(".txt"))
    .map((file) => file.slice(0, -4).replaceAll("-", "_"));
  const rows = described.filter((name) => !serverToolNames().includes(name));
  const advice = rows.map((name) => {
    const variable = name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
    return `add [${variable}, "workspace", "yes", "no", "no", "no", "no"] to TOOLS of src/tools/registry.ts`;
  });
  expect(advice).toEqual([]);
});
