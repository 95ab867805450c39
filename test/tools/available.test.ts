// The tools of each kind of chat, and the sub-chat messages that a waiting call shows. Needs no server.
import { expect, test } from "bun:test";
import { basename } from "node:path";
import { SubagentText } from "#actors/chat/subagents/text.ts";
import { toChatMode } from "#actors/chat/turn/offer.ts";
import { StreamBuffer } from "#actors/chat/turn/stream-buffer.ts";
import { CHAT_MODES, type ChatMode, toPlanPath } from "#src/tools/available.ts";
import { explainLimit, findToolUse, listServerToolNames, listTools } from "#src/tools/registry.ts";

const makeInput = (mode: ChatMode, has_workspace = true) => ({
  mode,
  is_planning: mode === "plan",
  has_workspace,
  plan_path: toPlanPath("chat"),
});
const listToolNames = (mode: ChatMode, has_workspace = true) =>
  listTools(makeInput(mode, has_workspace)).map(({ name }) => name);

const WORKSPACE_TOOLS = "read_file write_file edit_files execute process_output process_list process_signal".split(" ");
const TEMPLATE_TOOLS = ["list_templates", "read_template", "create_workspace"];
const AGENT_TOOLS = "spawn_agent wait_agent message_agent interrupt_agent list_agents list_subagent_models".split(" ");

test("[SB-2] [PM-2] each kind of chat has exactly its own tools", () => {
  expect(listToolNames("root")).toEqual(
    expect.arrayContaining([
      ...WORKSPACE_TOOLS,
      ...TEMPLATE_TOOLS,
      "start_workspace",
      "stop_workspace",
      ...AGENT_TOOLS,
    ]),
  );
  expect(listToolNames("root", false)).toEqual(expect.arrayContaining([...TEMPLATE_TOOLS, ...AGENT_TOOLS]));
  const planning = ["read_file", "write_file", "edit_files", "execute", "process_output", ...AGENT_TOOLS];
  expect(listToolNames("plan")).toEqual(expect.arrayContaining([...planning, "propose_plan", "ask_user_question"]));
  expect(listToolNames("general")).toEqual(expect.arrayContaining(WORKSPACE_TOOLS));
  expect(listToolNames("computer_use")).toEqual(expect.arrayContaining([...WORKSPACE_TOOLS, "computer"]));
  expect(listToolNames("explore")).toEqual(expect.arrayContaining(["read_file", "execute", "process_output"]));
  const excludedTools: Record<ChatMode, string[]> = {
    root: ["propose_plan", "ask_user_question", "computer"],
    plan: [...TEMPLATE_TOOLS, "start_workspace", "stop_workspace", "process_list", "process_signal"],
    general: [
      "computer",
      ...TEMPLATE_TOOLS,
      "start_workspace",
      "stop_workspace",
      ...AGENT_TOOLS,
      "propose_plan",
      "ask_user_question",
    ],
    explore: [
      ...TEMPLATE_TOOLS,
      ...AGENT_TOOLS,
      "write_file",
      "edit_files",
      "process_signal",
      "propose_plan",
      "computer",
    ],
    computer_use: [...TEMPLATE_TOOLS, ...AGENT_TOOLS, "propose_plan"],
  };
  for (const mode of CHAT_MODES) {
    expect(listToolNames(mode).filter((name) => excludedTools[mode].includes(name))).toEqual([]);
    expect(listToolNames(mode, false).filter((name) => WORKSPACE_TOOLS.includes(name))).toEqual([]);
    // Client tools are for people's chats, and not available in plan mode.
    expect(findToolUse("dynamic", makeInput(mode))).toBe(mode === "root" ? "yes" : "no");
    expect(findToolUse("toString", makeInput(mode))).toBe("no");
  }
});

test("[SB-2] [PM-3] an agent of a planning chat has only what both an explore agent and the planning chat have", () => {
  const agent = { ...makeInput("explore"), is_planning: true };
  expect(listTools(agent)).toEqual(listTools(makeInput("explore")));
  expect(findToolUse("execute", agent)).toBe("read_only");
  expect(["explore", "plan"].map((mode) => findToolUse("external_mcp", makeInput(mode as ChatMode)))).toEqual([
    "yes",
    "approved",
  ]);
  expect(findToolUse("external_mcp", agent)).toBe("approved");
});

test("[PM-3] in plan mode a chat writes only its plan and starts only explore agents", () => {
  const path = toPlanPath("chat");
  const makeEdit = (...paths: string[]) => ({ files: paths.map((path) => ({ path, edits: [] })) });
  const plan = makeInput("plan");
  expect(explainLimit("write_file", { path, content: "" }, plan)).toBeUndefined();
  expect(explainLimit("edit_files", makeEdit(path, path), plan)).toBeUndefined();
  for (const otherPath of ["a.md", `${path}/../x.md`, `./${path}`, ` ${path}`, ""]) {
    expect(explainLimit("write_file", { path: otherPath, content: "" }, plan)).toContain(path);
    expect(explainLimit("edit_files", makeEdit(path, otherPath), plan)).toContain(path);
  }
  expect(explainLimit("spawn_agent", { type: "explore", prompt: "x" }, plan)).toBeUndefined();
  expect(explainLimit("spawn_agent", { type: "general", prompt: "x" }, plan)).toContain("explore");
  for (const mode of ["root", "general"] as const) {
    expect(explainLimit("write_file", { path: "a.md", content: "" }, makeInput(mode))).toBeUndefined();
  }
});

test("[PM-1] a chat in plan mode plans; a sub-chat in plan mode only explores", () => {
  const chat = { owner_id: "", organization_id: "", workspace_id: null };
  const getMode = (is_root: boolean, plan_mode: "plan" | null, subagent_type: "general" | "explore" | null) =>
    toChatMode({ ...chat, is_root, plan_mode, subagent_type });
  expect([getMode(true, null, null), getMode(true, "plan", null)]).toEqual(["root", "plan"]);
  expect([getMode(false, null, "general"), getMode(false, null, "explore"), getMode(false, "plan", "general")]).toEqual(
    [...(["general", "explore", "explore"] as const)],
  );
});

test("[SB-5] the waiting call shows the newest message once, even if events are repeated, late or from an older message", () => {
  const output: string[] = [];
  const subagentText = new SubagentText({ write: (text) => output.push(text), reset: () => output.push("<reset>") });
  const makeBuffer = (history_version: number, ...parts: string[]) => {
    const buffer = new StreamBuffer("chat", { history_version, generation_attempt: 1 }, () => {});
    for (const part of parts) buffer.push({ type: "text", text: part });
    buffer.push({ type: "reasoning", text: "hm" });
    return buffer.copy();
  };
  const first = makeBuffer(1, "a", "b", "c");
  subagentText.add({ ...first, events: first.events.slice(0, 2) });
  subagentText.add(first);
  subagentText.add({ ...first, first_seq: 3, events: first.events.slice(2) });
  subagentText.add(makeBuffer(2));
  subagentText.add(makeBuffer(3, "d"));
  subagentText.add(first);
  expect(output).toEqual(["a", "b", "c", "<reset>", "d"]);
});

test("[SB-2] each tool has a source file and a description file named after it, and at least one kind of chat has it", () => {
  const files = new Set(
    [...new Bun.Glob("**/*").scanSync(`${import.meta.dir}/../../src/tools`)].map((file) => basename(file)),
  );
  const availableNames = new Set(CHAT_MODES.flatMap((mode) => listToolNames(mode)));
  for (const name of listServerToolNames()) {
    const file = name.replaceAll("_", "-");
    expect([name, availableNames.has(name), files.has(`${file}.ts`), files.has(`${file}.txt`)]).toEqual([
      name,
      true,
      true,
      true,
    ]);
  }
  // A file with a description is a tool. Its row in TOOLS of registry.ts decides which chats have the tool.
  const describedNames = [...files]
    .filter((file) => file.endsWith(".txt"))
    .map((file) => file.slice(0, -4).replaceAll("-", "_"));
  const missingNames = describedNames.filter((name) => !listServerToolNames().includes(name));
  const advice = missingNames.map((name) => {
    const variable = name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
    return `add [${variable}, "workspace", "yes", "no", "no", "no", "no"] to TOOLS of src/tools/registry.ts`;
  });
  expect(advice).toEqual([]);
});
