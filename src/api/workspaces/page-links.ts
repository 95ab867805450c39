// Redirects the workspace and task URLs of Coder servers to Slipway's pages (facts/vscode-plugin 3.3).
import { t } from "elysia";
import { AppError } from "#base/errors.ts";
import { loadTask } from "#domain/tasks/find.ts";
import type { ApiContext } from "../context.ts";
import { getUser } from "../http/caller.ts";
import { routes } from "../http/routes.ts";
import { isSignedIn, redirectTo, redirectToSignIn } from "../http/sign-in-first.ts";
import { findWorkspaceId } from "./by-owner.ts";

const hidden = { detail: { hide: true } };
const named = t.Object({ owner: t.String(), workspace: t.String() });

export const pageLinks = (ctx: ApiContext) => {
  /** Redirects to the result of `find`, or to the list when the caller has no such resource. */
  const redirectToFound = async (request: Request, list: string, find: () => Promise<string>): Promise<Response> => {
    if (!isSignedIn(request)) return redirectToSignIn(request);
    try {
      return redirectTo(await find());
    } catch (error) {
      if (error instanceof AppError && error.kind === "not_found") return redirectTo(list);
      throw error;
    }
  };
  const workspace = (request: Request, { owner, workspace: name }: typeof named.static, tab = ""): Promise<Response> =>
    redirectToFound(request, "/workspaces", async () => {
      const id = await findWorkspaceId(ctx, getUser(request), { owner, name, includeDeleted: false });
      return `/workspaces/${id}${tab}`;
    });
  return routes()
    .get("/@:owner/:workspace", ({ request, params }) => workspace(request, params), { params: named, ...hidden })
    .get("/@:owner/:workspace/settings", ({ request, params }) => workspace(request, params, "/schedule"), {
      params: named,
      ...hidden,
    })
    .get("/@:owner/:workspace/settings/:part", ({ request, params }) => workspace(request, params, "/schedule"), {
      params: t.Object({ ...named.properties, part: t.String() }),
      ...hidden,
    })
    .get("/@:owner/:workspace/builds/:number", ({ request, params }) => workspace(request, params, "/builds"), {
      params: t.Object({ ...named.properties, number: t.String() }),
      ...hidden,
    })
    .get(
      "/tasks/:owner/:task",
      ({ request, params: { owner, task } }) =>
        redirectToFound(request, "/tasks", async () => {
          const { chat_id, workspace_id } = await loadTask(ctx.store, { user: owner, task }, getUser(request));
          return chat_id === null ? `/workspaces/${workspace_id}` : `/chats/${chat_id}`;
        }),
      { params: t.Object({ owner: t.String(), task: t.String() }), ...hidden },
    );
};
