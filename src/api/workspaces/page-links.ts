// Redirects the workspace and task URLs of Coder servers to Slipway's pages (facts/vscode-plugin 3.3).
import { t } from "elysia";
import { AppError } from "#base/errors.ts";
import { loadTask } from "#domain/tasks/find.ts";
import type { ApiContext } from "../context.ts";
import { getUser } from "../http/caller.ts";
import { routes } from "../http/routes.ts";
import { isSignedIn, redirectTo, redirectToSignIn } from "../http/sign-in-first.ts";
import { findWorkspaceId } from "./by-owner.ts";

const hiddenRoute = { detail: { hide: true } };
const workspaceParams = t.Object({ owner: t.String(), workspace: t.String() });

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
  const redirectToWorkspace = (
    request: Request,
    { owner, workspace: name }: typeof workspaceParams.static,
    tab = "",
  ): Promise<Response> =>
    redirectToFound(request, "/workspaces", async () => {
      const id = await findWorkspaceId(ctx, getUser(request), { owner, name, includeDeleted: false });
      return `/workspaces/${id}${tab}`;
    });
  return routes()
    .get("/@:owner/:workspace", ({ request, params }) => redirectToWorkspace(request, params), {
      params: workspaceParams,
      ...hiddenRoute,
    })
    .get("/@:owner/:workspace/settings", ({ request, params }) => redirectToWorkspace(request, params, "/schedule"), {
      params: workspaceParams,
      ...hiddenRoute,
    })
    .get(
      "/@:owner/:workspace/settings/:part",
      ({ request, params }) => redirectToWorkspace(request, params, "/schedule"),
      {
        params: t.Object({ ...workspaceParams.properties, part: t.String() }),
        ...hiddenRoute,
      },
    )
    .get(
      "/@:owner/:workspace/builds/:number",
      ({ request, params }) => redirectToWorkspace(request, params, "/builds"),
      {
        params: t.Object({ ...workspaceParams.properties, number: t.String() }),
        ...hiddenRoute,
      },
    )
    .get(
      "/tasks/:owner/:task",
      ({ request, params: { owner, task } }) =>
        redirectToFound(request, "/tasks", async () => {
          const { chat_id, workspace_id } = await loadTask(ctx.store, { user: owner, task }, getUser(request));
          return chat_id === null ? `/workspaces/${workspace_id}` : `/chats/${chat_id}`;
        }),
      { params: t.Object({ owner: t.String(), task: t.String() }), ...hiddenRoute },
    );
};
