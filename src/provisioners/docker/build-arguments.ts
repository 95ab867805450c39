// Which arguments of a repository's build the engine gets. It gives some to every step of a Dockerfile without asking for them in the key of its layer
// cache: a step that fetched something through one repository's proxy would be found again by every other one.

const UNKEYED = /^(?:http|https|ftp|all|no)_proxy$/i;

/** Splits a build's arguments into those that are given to the engine, and the names of those that are not. */
export const splitArguments = (
  args: Readonly<Record<string, string>>,
): { readonly given: Record<string, string>; readonly dropped: readonly string[] } => ({
  given: Object.fromEntries(Object.entries(args).filter(([name]) => !UNKEYED.test(name))),
  dropped: Object.keys(args).filter((name) => UNKEYED.test(name)),
});
