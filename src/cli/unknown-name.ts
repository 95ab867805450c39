// Reports unknown names, with the closest match.
import { suggestName } from "#base/config/suggest.ts";
import { VerbFailure } from "./failure.ts";
import { toPlainLine } from "./text.ts";

/**
 * Returns an error such as `there is no workspace dvv. Did you mean dev? ...`. `names` are searched for the closest match; `list` is
 * the command that shows them.
 */
export const toUnknownNameError = async (
  kind: string,
  name: string,
  names: () => readonly string[] | Promise<readonly string[]>,
  list: string,
): Promise<VerbFailure> => {
  const knownNames = await Promise.resolve(names()).catch(() => []);
  return new VerbFailure(
    `there is no ${kind} ${toPlainLine(name)}.${toPlainLine(suggestName(name, knownNames))} \`${list}\` lists them.`,
  );
};
