// The skills of a chat: those its workspace reported when it was pinned, and the personal ones of its owner, under the names the model calls
// them by (facts/chats 5.5, rule CX-11). Pure; who reads them from the store is actors/chat/prompt/context-blocks.ts.

type Described = { readonly name: string; readonly description: string };
/** `folder`: where its files are in the workspace. */
export type WorkspaceSkill = Described & { readonly body: string; readonly folder: string };
export type PersonalSkill = Described & { readonly body: string };

export type Skill = Described & { readonly body: string; readonly folder: string | null };

export interface Skills {
  /** All of them, by name. */
  list(): Promise<readonly Skill[]>;
}

/** By name. Where both sides have a name, each is called by its side: `workspace/name` and `personal/name`. */
export const namedSkills = (workspace: readonly WorkspaceSkill[], personal: readonly PersonalSkill[]): Skill[] => {
  const theirs = new Set(workspace.map(({ name }) => name));
  const own = new Set(personal.map(({ name }) => name));
  const all = [
    ...workspace.map((one) => ({ ...one, name: own.has(one.name) ? `workspace/${one.name}` : one.name })),
    ...personal.map((one) => ({
      ...one,
      folder: null,
      name: theirs.has(one.name) ? `personal/${one.name}` : one.name,
    })),
  ];
  return all.sort((a, b) => (a.name < b.name ? -1 : 1));
};

/** The skill that the model means: also `workspace/name` or `personal/name` where no other has that name. */
export const skillNamed = (skills: readonly Skill[], name: string): Skill | undefined => {
  const plain = skills.find((one) => one.name === name);
  if (plain) return plain;
  const [, side, rest] = /^(workspace|personal)\/(.+)$/.exec(name) ?? [];
  return skills.find((one) => one.name === rest && (one.folder === null) === (side === "personal"));
};
