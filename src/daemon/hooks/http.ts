// The daemon's HTTP API for the workspace's hooks: listing them and running one (rule HK-19).
import type { Static, TSchema } from "@sinclair/typebox";
import { conflict, notFound } from "#base/errors.ts";
import { type DeclaredHooks, RunHook } from "#schema/agents/workspace-hooks.ts";
import { readDeclaration } from "./declared.ts";
import type { HookPrograms } from "./run.ts";

type Options = { readonly hooks: HookPrograms; resolve(path: string): string };
type ReadBody = <S extends TSchema>(request: Request, schema: S) => Promise<Static<S>>;

export const createHookRoutes = ({ hooks: programs, resolve }: Options, readBody: ReadBody) => ({
  "/api/v0/hooks": {
    GET: async () => {
      const { revision, error, hooks } = await readDeclaration(resolve("."));
      const declared = hooks.map(({ name, event, matcher }) => ({ name, event, matcher }));
      return Response.json({ revision, error, hooks: declared } satisfies DeclaredHooks);
    },
  },
  /** Rejects with 409 if the file has changed since the hook was listed. */
  "/api/v0/hooks/run": {
    POST: async (request: Request) => {
      const hookRequest = await readBody(request, RunHook);
      const { revision, hooks } = await readDeclaration(resolve("."));
      if (revision !== hookRequest.revision) throw conflict("The hooks of the workspace have changed.");
      const hook = hooks.find(({ name }) => name === hookRequest.name);
      if (!hook) throw notFound();
      return Response.json(await programs.run(hook, hookRequest.request));
    },
  },
});
