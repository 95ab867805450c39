// Completions while the user types: commands after a `/` at the start, files after an `@`. Pure.

export type Command = {
  readonly name: string;
  readonly about: string;
  /** `rest` is the text after the name. */
  readonly act: (rest: string) => unknown;
};

export type Offer = { readonly label: string; readonly note: string; readonly replace: (text: string) => string };

const MAX_OFFERS = 8;

/** Returns completions for the word before the caret. */
export const listOffers = (
  text: string,
  caret: number,
  commands: readonly Command[],
  files: readonly string[],
): readonly Offer[] => {
  const before = text.slice(0, caret);
  const slash = /^\/(\w*)$/.exec(before);
  if (slash) {
    return commands
      .filter(({ name }) => name.startsWith(slash[1] ?? ""))
      .slice(0, MAX_OFFERS)
      .map(({ name, about }) => ({ label: `/${name}`, note: about, replace: () => `/${name} ` }));
  }
  const at = /(^|\s)@(\S*)$/.exec(before);
  if (!at) return [];
  const started = (at[2] ?? "").toLowerCase();
  const start = caret - (at[2]?.length ?? 0);
  return files
    .filter((path) => path.toLowerCase().includes(started))
    .slice(0, MAX_OFFERS)
    .map((path) => ({
      label: path,
      note: "",
      replace: (whole) => `${whole.slice(0, start)}${path} ${whole.slice(caret)}`,
    }));
};

/** Returns the command if the text is one. */
export const findCommand = (text: string, commands: readonly Command[]): (() => unknown) | undefined => {
  const [, name, rest = ""] = /^\/(\w+)(?:\s+([\s\S]*))?$/.exec(text.trim()) ?? [];
  const found = commands.find((one) => one.name === name);
  return found && (() => found.act(rest.trim()));
};
