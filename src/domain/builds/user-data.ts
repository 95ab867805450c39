// Decides whether the agents of a build get the owner's tokens, keys and secrets. Pure.
import type { CreateBuild } from "#schema/workspaces/build.ts";

/** The cause of a build. */
export type BuildCause =
  | {
      readonly by: "person";
      readonly transition: CreateBuild["transition"];
      /** Whether the person has access to the workspace. */
      readonly mayEnter: boolean;
      /** Whether the person requests a different version, values or state than the previous build's. */
      readonly isChanged: boolean;
    }
  /** A schedule, a connection or a model: no person has approved what the build runs. */
  | { readonly by: "server" };

/**
 * Returns whether the agents get none of the owner's data. Becomes true when a person without access to the workspace starts the workspace or
 * changes what it runs, and false when a person with access starts it. `before` is the previous build's value; false for the first build.
 */
export const hidesUserData = (cause: BuildCause, before: boolean): boolean => {
  if (cause.by === "server") return before;
  const isStart = cause.transition === "start";
  if (cause.mayEnter) return !isStart && before;
  return isStart || cause.isChanged || before;
};
