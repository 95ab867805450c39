// The prompt blocks about a workspace: the instruction files and skills that the chat has pinned, and its owner's personal skills
// (facts/chats 5.4 blocks 3 and 4, 5.5). Snapshots are immutable, so their texts are cached.
import { findChatContext, findSnapshot } from "#db/chats/context.ts";
import type { Store } from "#db/engine/store.ts";
import { listUserSkillNames, listUserSkills } from "#db/users/skills.ts";
import type { StoredResource } from "#schema/chats/chat-context.ts";
import { mergeSkills, type Skill, type Skills, type WorkspaceSkill } from "#src/tools/skills/skills.ts";
import type { BlockProvider } from "./prompt.ts";

type Deps = Pick<Store, "get" | "all">;
type ContextText = { readonly instructions: string; readonly skills: readonly WorkspaceSkill[] };

const EMPTY_CONTEXT: ContextText = { instructions: "", skills: [] };
/** Maximum cached snapshots. */
const MAX_CACHED = 64;

/** Provides blocks 3 and 4 of the prompt (rules CX-9, CX-11). */
export const contextBlocks = (store: Deps): BlockProvider => {
  const loadPinned = createContextLoader(store);
  return async ({ chat_key, owner_id }) => {
    const { instructions, skills } = await loadPinned(chat_key);
    const personal = await store.all(listUserSkillNames({ user_id: owner_id }));
    return [
      { slot: "instructions", text: instructions },
      {
        slot: "skills",
        text: formatSkills(
          mergeSkills(
            skills,
            personal.map((one) => ({ ...one, body: "" })),
          ),
        ),
      },
    ];
  };
};

/** Returns a function that provides the skills of a chat, including their text. */
export const chatSkills = (store: Deps): ((chat: { chat_key: number; owner_id: string }) => Skills) => {
  const loadPinned = createContextLoader(store);
  return ({ chat_key, owner_id }) => ({
    list: async () => {
      const { skills } = await loadPinned(chat_key);
      const personal = await store.all(listUserSkills({ user_id: owner_id }));
      return mergeSkills(
        skills,
        personal.map(({ name, description, content }) => ({ name, description, body: content })),
      );
    },
  });
};

const createContextLoader = (store: Deps) => {
  const cache = new Map<string, ContextText>();
  return async (chat: number): Promise<ContextText> => {
    const pin = await store.get(findChatContext({ chat }));
    if (!pin) return EMPTY_CONTEXT;
    let context = cache.get(pin.snapshot);
    if (!context) {
      const snapshot = await store.get(findSnapshot({ id: pin.snapshot }));
      context = snapshot ? formatContext(snapshot.resources) : EMPTY_CONTEXT;
    }
    cache.delete(pin.snapshot);
    cache.set(pin.snapshot, context);
    const [oldest = ""] = cache.keys();
    if (cache.size > MAX_CACHED) cache.delete(oldest);
    return context;
  };
};

/** Returns a snapshot's instructions and skills. For a truncated file, adds a note that the model can read the whole file. */
export const formatContext = (resources: readonly StoredResource[]): ContextText => {
  const files = resources.filter(({ kind }) => kind === "instruction_file");
  const blocks = files.flatMap(({ source, status, truncated, body = "" }) => {
    if (status !== "ok" && status !== "oversize") return [];
    const text = body.trim();
    const wrapped = text === "" ? [] : [`<instructions file=${JSON.stringify(source)}>\n${text}\n</instructions>`];
    if (status === "ok" && !truncated) return wrapped;
    const remark = wrapped.length > 0 ? "continues beyond this" : "is too long to include";
    return [...wrapped, `${source} ${remark}: read it with read_file when you need it.`];
  });
  const skills = resources.flatMap(({ kind, status, source, skill_name, skill_description = "", body = "" }) =>
    kind === "skill" && status === "ok" && skill_name
      ? [{ name: skill_name, description: skill_description, body, folder: source }]
      : [],
  );
  return { instructions: blocks.length === 0 ? "" : [INSTRUCTIONS_INTRO, ...blocks].join("\n\n"), skills };
};

/** Returns one line per skill; empty without skills. */
export const formatSkills = (skills: readonly Pick<Skill, "name" | "description">[]): string =>
  skills.length === 0
    ? ""
    : [SKILLS_INTRO, ...skills.map(({ name, description }) => `- ${name}: ${description.replace(/\s+/g, " ")}`)].join(
        "\n",
      );

const INSTRUCTIONS_INTRO =
  "The workspace gives these instructions for work in it. Follow them unless the person says otherwise:";
const SKILLS_INTRO =
  "There are skills: instructions for certain kinds of work. When one of them fits the task, read it with read_skill before you begin:";
