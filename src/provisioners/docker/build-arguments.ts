// Selects the build arguments of a repository that the engine gets. Docker passes its predefined arguments to every step, but leaves them
// out of the layer cache's key: a layer fetched through one repository's proxy would be reused by every other one.

const UNKEYED = /^(?:http|https|ftp|all|no)_proxy$/i;

/** Splits a build's arguments into the ones that the engine gets, and the names of the rest. */
export const splitArguments = (
  args: Readonly<Record<string, string>>,
): { readonly given: Record<string, string>; readonly dropped: readonly string[] } => ({
  given: Object.fromEntries(Object.entries(args).filter(([name]) => !UNKEYED.test(name))),
  dropped: Object.keys(args).filter((name) => UNKEYED.test(name)),
});
