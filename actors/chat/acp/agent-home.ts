// Provides a coding agent with its chat's instructions and skills before the session starts, as files in its home directory, in the format
// that it reads. An agent that reads no such files gets the instructions in its first prompt.
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
import { customPrompt } from "../turn/model-call.ts";
import { formatContent } from "./handover.ts";

type Deps = {
  readonly store: Store;
  readonly hooks: Hooks;
  readonly skills: (chat: { readonly chat_key: number; readonly owner_id: string }) => Skills;
};
type Attempt = Pick<StartedAttempt, "about" | "chat_key" | "mcp_server_ids">;
type AgentFiles = Pick<CodingAgent, "instructions_file" | "skills_folder" | "own_instructions">;

type PreparedContext = HomeFiles & {
  /** Text to put before the first prompt. Empty if the agent reads it from a file. */
  readonly introduction: string;
  /** Changes when the chat's workspace changes, or anything else that the agent reads only at startup. */
  readonly key: string;
};

export const prepareContext = async (
  { store, hooks, skills }: Deps,
  { about, chat_key, mcp_server_ids }: Attempt,
  history: readonly Pick<MessageRow, "role" | "content">[],
  forms: AgentFiles,
): Promise<PreparedContext> => {
  const { owner_id, workspace_id } = about;
  const [settings, chatPrompt, pin, available, folder] = await Promise.all([
    readCallSettings(store, owner_id),
    customPrompt({ hooks, store }, chat_key),
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
    own: forms.own_instructions ?? [],
    folder,
  });
  const files = toFiles(instructions, available, forms);
  const key = sha256(JSON.stringify([files, [...mcp_server_ids].sort(), workspace_id]));
  return Object.assign({}, files, { key });
};

type Instructions = {
  readonly administrator: string;
  readonly chat: readonly string[];
  readonly personal: string;
  readonly resources: readonly StoredResource[];
  /** Names of files in the workspace's folder that the agent reads itself. */
  readonly own: readonly string[];
  readonly folder: string | undefined;
};

/** Returns the instructions that the agent does not find itself. Pure. */
const buildInstructions = ({ administrator, chat, personal, resources, own, folder }: Instructions): string => {
  const readFiles = new Set(folder === undefined ? [] : own.map((name) => join(folder, name)));
  const { instructions } = formatContext(resources.filter(({ source }) => !readFiles.has(source)));
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
  const inFolder = skills_folder !== "";
  const linkable = inFolder ? skills : [];
  const list = inFolder ? "" : describeSkills(skills);
  const text = [instructions, list].filter((one) => one !== "").join("\n\n");
  const hasFile = instructions_file !== "";
  return {
    home_files: [
      ...(hasFile && text !== "" ? [{ path: instructions_file, text: `${text}\n` }] : []),
      ...linkable.flatMap((skill) =>
        skill.folder === null
          ? [{ path: join(skills_folder, toFolder(skill), "SKILL.md"), text: toSkillFile(skill) }]
          : [],
      ),
    ],
    home_links: linkable.flatMap((skill) =>
      skill.folder === null ? [] : [{ path: join(skills_folder, toFolder(skill)), target: skill.folder }],
    ),
    introduction: hasFile ? "" : text,
  };
};

/** Turns `personal/review` into the folder name `personal-review`. */
const toFolder = ({ name }: Skill): string => name.replaceAll("/", "-");

const toSkillFile = (skill: Skill): string =>
  `---\nname: ${toFolder(skill)}\ndescription: ${JSON.stringify(skill.description.replace(/\s+/g, " "))}\n---\n\n${toBody(skill)}\n`;

/** Returns the body without its original front matter. */
const toBody = ({ body }: Skill): string => body.replace(/^---\n[\s\S]*?\n---\n/, "").trim();

/** Describes skills to agents without skill support: workspace skills by their files, the owner's skills with their full text. */
const describeSkills = (skills: readonly Skill[]): string => {
  if (skills.length === 0) return "";
  const texts = skills.map(({ name, description, body, folder }) =>
    folder === null
      ? `<skill name=${JSON.stringify(name)}>\n${body.trim()}\n</skill>`
      : `The skill ${name} is in ${join(folder, "SKILL.md")}. ${description}`,
  );
  return `These are instructions for certain kinds of work. Follow one when it fits the task.\n\n${texts.join("\n\n")}`;
};
