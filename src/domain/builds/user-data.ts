// Whether the agents of a build get what belongs to the workspace's owner, such as tokens, keys and secrets. Pure.
import type { CreateBuild } from "#schema/workspaces/build.ts";

/** Who is behind a build. */
export type BuildCause =
  | {
      readonly by: "person";
      readonly transition: CreateBuild["transition"];
      /** Whether the person may enter the workspace. */
      readonly mayEnter: boolean;
      /** Whether the person asks for another version, other values or another state than the build before has. */
      readonly isChanged: boolean;
    }
  /** A schedule, a connection or a model: no person agrees to what the build runs. */
  | { readonly by: "server" };

/**
 * Returns whether the agents get nothing of the owner's: a person who may not enter the workspace asked for it to run, or changed what runs.
 * It stays so until a person who may enter the workspace starts it. `before` is what holds for the build before; false for the first one.
 */
export const hidesUserData = (cause: BuildCause, before: boolean): boolean => {
  if (cause.by === "server") return before;
  const starts = cause.transition === "start";
  if (cause.mayEnter) return !starts && before;
  return starts || cause.isChanged || before;
};
