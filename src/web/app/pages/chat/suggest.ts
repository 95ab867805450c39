// Completions while the user types: commands after a `/` at the start, files after an `@`. Pure.

export type Command = {
  readonly name: string;
  readonly description: string;
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
  const textBefore = text.slice(0, caret);
  const commandMatch = /^\/(\w*)$/.exec(textBefore);
  if (commandMatch) {
    return commands
      .filter(({ name }) => name.startsWith(commandMatch[1] ?? ""))
      .slice(0, MAX_OFFERS)
      .map(({ name, description }) => ({ label: `/${name}`, note: description, replace: () => `/${name} ` }));
  }
  const pathMatch = /(^|\s)@(\S*)$/.exec(textBefore);
  if (!pathMatch) return [];
  const partialPath = (pathMatch[2] ?? "").toLowerCase();
  const start = caret - (pathMatch[2]?.length ?? 0);
  return files
    .filter((path) => path.toLowerCase().includes(partialPath))
    .slice(0, MAX_OFFERS)
    .map((path) => ({
      label: path,
      note: "",
      replace: (currentText) => `${currentText.slice(0, start)}${path} ${currentText.slice(caret)}`,
    }));
};

/** Returns the command if the text is one. */
export const findCommand = (text: string, commands: readonly Command[]): (() => unknown) | undefined => {
  const [, name, rest = ""] = /^\/(\w+)(?:\s+([\s\S]*))?$/.exec(text.trim()) ?? [];
  const command = commands.find((one) => one.name === name);
  return command && (() => command.act(rest.trim()));
};
