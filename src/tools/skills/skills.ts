// The skills of a chat: those its workspace reported when its context was pinned, and its owner's personal ones, with the names that the
// model uses (facts/chats 5.5, rule CX-11). Pure; actors/chat/prompt/context-blocks.ts loads them.

type SkillHeader = { readonly name: string; readonly description: string };
/** `folder`: the location of its files in the workspace. */
export type WorkspaceSkill = SkillHeader & { readonly body: string; readonly folder: string };
export type PersonalSkill = SkillHeader & { readonly body: string };

export type Skill = SkillHeader & { readonly body: string; readonly folder: string | null };

export interface Skills {
  /** Returns all skills by name. */
  list(): Promise<readonly Skill[]>;
}

/** Returns the skills by name. If both sources have the same name, they are called `workspace/name` and `personal/name`. */
export const mergeSkills = (workspace: readonly WorkspaceSkill[], personal: readonly PersonalSkill[]): Skill[] => {
  const workspaceNames = new Set(workspace.map(({ name }) => name));
  const personalNames = new Set(personal.map(({ name }) => name));
  const all = [
    ...workspace.map((one) => ({ ...one, name: personalNames.has(one.name) ? `workspace/${one.name}` : one.name })),
    ...personal.map((one) => ({
      ...one,
      folder: null,
      name: workspaceNames.has(one.name) ? `personal/${one.name}` : one.name,
    })),
  ];
  return all.sort((a, b) => (a.name < b.name ? -1 : 1));
};

/** Returns the skill that the model means; also accepts `workspace/name` or `personal/name` for a unique name. */
export const findSkill = (skills: readonly Skill[], name: string): Skill | undefined => {
  const plain = skills.find((one) => one.name === name);
  if (plain) return plain;
  const [, side, plainName] = /^(workspace|personal)\/(.+)$/.exec(name) ?? [];
  return skills.find((one) => one.name === plainName && (one.folder === null) === (side === "personal"));
};
