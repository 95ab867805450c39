// Parses the front matter of a SKILL.md: YAML between two lines of dashes, with a description and a name, which must be the folder's name
// (facts/chats 5.5, rule CX-3). Pure.

export type SkillHead = { readonly name: string; readonly description: string } | { readonly problem: string };

const MAX_NAME_CHARS = 64;
const MAX_DESCRIPTION_CHARS = 1_024;
const KEBAB = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** Returns the name and description, or what is wrong. */
export const parseSkillHead = (text: string, folder: string): SkillHead => {
  const [, head] = /^\uFEFF?---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/.exec(text) ?? [];
  if (head === undefined) return { problem: "has no front matter between two lines of ---" };
  let fields: unknown;
  try {
    fields = Bun.YAML.parse(head);
  } catch {
    return { problem: "has front matter that is no YAML" };
  }
  const { name, description } = (typeof fields === "object" && fields !== null ? fields : {}) as Record<
    string,
    unknown
  >;
  if (typeof name !== "string" || !KEBAB.test(name) || name.length > MAX_NAME_CHARS) {
    return { problem: "needs a name of lower-case words joined by dashes" };
  }
  if (name !== folder) return { problem: `has the name ${name}, but its folder is ${folder}` };
  if (typeof description !== "string" || description.trim() === "") return { problem: "needs a description" };
  return { name, description: description.trim().slice(0, MAX_DESCRIPTION_CHARS) };
};
