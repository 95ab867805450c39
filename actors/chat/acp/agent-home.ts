// Builds the files in a coding agent's home directory that give it the chat's instructions and skills, in the format that the agent reads.
// An agent that reads no such files gets the instructions in its first prompt.
import { join } from "node:path";
import { sha256 } from "#base/ids.ts";
import { findChatContext, findSnapshot } from "#db/chats/context.ts";
import type { MessageRow } from "#db/chats/messages.ts";
import { readCallSettings } from "#db/chats/settings.ts";
import type { Store } from "#db/engine/store.ts";
import type { HomeFiles } from "#schema/agents/agent-program.ts";
import type { CodingAgent } from "#schema/ai/coding-agents.ts";
import type { StoredResource } from "#schema/chats/chat-context.ts";
import type { Hooks } from "#src/hooks/hooks.ts";
import type { Skill, Skills } from "#src/tools/skills/skills.ts";
import type { StartedAttempt } from "../messages.ts";
import { formatContext } from "../prompt/context-blocks.ts";
import { loadAgentFolder } from "../turn/agent-choice.ts";
import { readCustomPrompt } from "../turn/model-call.ts";
import { formatContent } from "./handover.ts";

type Deps = {
  readonly store: Store;
  readonly hooks: Hooks;
  readonly skills: (chat: { readonly chat_key: number; readonly owner_id: string }) => Skills;
};
type Attempt = Pick<StartedAttempt, "chat" | "chat_key" | "mcp_server_ids">;
type AgentFiles = Pick<CodingAgent, "instructions_file" | "skills_folder" | "own_instructions">;

type PreparedContext = HomeFiles & {
  /** Text to put before the first prompt. Empty if the agent reads it from a file. */
  readonly introduction: string;
  /** Changes with everything that the agent reads only at startup: instructions, skills, MCP servers and workspace. */
  readonly key: string;
};

export const prepareContext = async (
  { store, hooks, skills }: Deps,
  { chat, chat_key, mcp_server_ids }: Attempt,
  history: readonly Pick<MessageRow, "role" | "content">[],
  agentFiles: AgentFiles,
): Promise<PreparedContext> => {
  const { owner_id, workspace_id } = chat;
  const [settings, chatPrompt, pin, available, folder] = await Promise.all([
    readCallSettings(store, owner_id),
    readCustomPrompt({ hooks, store }, chat_key),
    store.get(findChatContext({ chat: chat_key })),
    skills({ chat_key, owner_id }).list(),
    loadAgentFolder(store, workspace_id),
  ]);
  const snapshot = pin && (await store.get(findSnapshot({ id: pin.snapshot })));
  const instructions = buildInstructions({
    administrator: settings.system_prompt.text,
    chat: history.filter(({ role }) => role === "system").map(({ content }) => formatContent(content)),
    personal: chatPrompt ?? settings.prompt,
    resources: snapshot?.resources ?? [],
    ownFiles: agentFiles.own_instructions ?? [],
    folder,
  });
  const files = toFiles(instructions, available, agentFiles);
  const key = sha256(JSON.stringify([files, [...mcp_server_ids].sort(), workspace_id]));
  return Object.assign({}, files, { key });
};

type Instructions = {
  readonly administrator: string;
  readonly chat: readonly string[];
  readonly personal: string;
  readonly resources: readonly StoredResource[];
  /** Names of files in the workspace's folder that the agent reads itself. */
  readonly ownFiles: readonly string[];
  readonly folder: string | undefined;
};

/** Returns the instructions, without the files in the workspace's folder that the agent reads itself. */
const buildInstructions = ({ administrator, chat, personal, resources, ownFiles, folder }: Instructions): string => {
  const ownPaths = new Set(folder === undefined ? [] : ownFiles.map((name) => join(folder, name)));
  const { instructions } = formatContext(resources.filter(({ source }) => !ownPaths.has(source)));
  return [
    administrator,
    ...chat,
    instructions,
    personal.trim() === "" ? "" : `Your user has set these instructions for all chats:\n\n${personal}`,
  ]
    .map((text) => text.trim())
    .filter((text) => text !== "")
    .join("\n\n");
};

const toFiles = (
  instructions: string,
  skills: readonly Skill[],
  { instructions_file = "", skills_folder = "" }: AgentFiles,
): Omit<PreparedContext, "key"> => {
  const hasSkillsFolder = skills_folder !== "";
  const hasInstructionsFile = instructions_file !== "";
  const skillList = hasSkillsFolder ? "" : describeSkills(skills);
  const text = [instructions, skillList].filter((one) => one !== "").join("\n\n");
  const home_files = hasInstructionsFile && text !== "" ? [{ path: instructions_file, text: `${text}\n` }] : [];
  const home_links: { path: string; target: string }[] = [];
  for (const skill of hasSkillsFolder ? skills : []) {
    const path = join(skills_folder, toFolderName(skill));
    if (skill.folder !== null) home_links.push({ path, target: skill.folder });
    else home_files.push({ path: join(path, "SKILL.md"), text: toSkillFile(skill) });
  }
  return { home_files, home_links, introduction: hasInstructionsFile ? "" : text };
};

/** Turns `personal/review` into the folder name `personal-review`. */
const toFolderName = ({ name }: Skill): string => name.replaceAll("/", "-");

const toSkillFile = (skill: Skill): string => {
  const description = JSON.stringify(skill.description.replace(/\s+/g, " "));
  const bodyWithoutFrontMatter = skill.body.replace(/^---\n[\s\S]*?\n---\n/, "").trim();
  return `---\nname: ${toFolderName(skill)}\ndescription: ${description}\n---\n\n${bodyWithoutFrontMatter}\n`;
};

/** Describes skills to an agent without a skills folder. The owner's skills have no files in the workspace, so their text is included. */
const describeSkills = (skills: readonly Skill[]): string => {
  if (skills.length === 0) return "";
  const texts = skills.map(({ name, description, body, folder }) =>
    folder === null
      ? `<skill name=${JSON.stringify(name)}>\n${body.trim()}\n</skill>`
      : `The skill ${name} is in ${join(folder, "SKILL.md")}. ${description}`,
  );
  return `These are instructions for certain kinds of work. Follow one when it fits the task.\n\n${texts.join("\n\n")}`;
};
