// Wire shapes of hooks that a workspace declares: the daemon's report of them, and the request that runs one (docs/hooks.md).
import { type Static, Type as t } from "@sinclair/typebox";
import { strictObject } from "../strict.ts";

/** A hook that can be called; `matcher` is a tool's name or `*`. */
export const DeclaredHook = t.Object({
  name: t.String({ minLength: 1, maxLength: 64 }),
  event: t.String({ maxLength: 64 }),
  matcher: t.String({ maxLength: 256 }),
});
export type DeclaredHook = Static<typeof DeclaredHook>;

/** `revision` changes with the file. `error` is the reason why the file cannot be used; empty if it can. */
export const DeclaredHooks = t.Object({
  revision: t.String({ maxLength: 64 }),
  error: t.String({ maxLength: 1_024 }),
  hooks: t.Array(DeclaredHook, { maxItems: 16 }),
});
export type DeclaredHooks = Static<typeof DeclaredHooks>;

/** Runs a hook's program. `request` is the program's input. */
export const RunHook = strictObject({
  revision: t.String({ maxLength: 64 }),
  name: t.String({ maxLength: 64 }),
  request: t.String(),
});
export type RunHook = Static<typeof RunHook>;

/** The result of a hook's program. The output is used only if the program succeeded. */
export const HookRun = t.Object({
  outcome: t.Union([t.Literal("ok"), t.Literal("timeout"), t.Literal("failed"), t.Literal("too_long")]),
  exit_code: t.Integer(),
  /** In base64. */
  output: t.String({ maxLength: 90_000 }),
});
export type HookRun = Static<typeof HookRun>;
