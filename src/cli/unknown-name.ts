// Names that belong to nothing, with the nearest that does.
import { didYouMean } from "#base/config/nearest.ts";
import { VerbFailure } from "./failure.ts";
import { plain } from "./text.ts";

/** `there is no workspace dvv. Did you mean dev? ...`. `names` are looked through, where they can be had; `list` is the verb that shows them. */
export const unknownName = async (
  what: string,
  name: string,
  names: () => readonly string[] | Promise<readonly string[]>,
  list: string,
): Promise<VerbFailure> => {
  const known = await Promise.resolve(names()).catch(() => []);
  return new VerbFailure(
    `there is no ${what} ${plain(name)}.${plain(didYouMean(name, known))} \`${list}\` lists them.`,
  );
};
