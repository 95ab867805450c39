// The types of calls (src/schema/routes.ts) match the routes, and reject calls that the server does not have.
import { expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import type { AnswerOf, BodyOf, CallAt, QueryOf } from "#schema/call-types.ts";
import type { Build, CreateBuild } from "#schema/workspaces/build.ts";
import { Workspace } from "#schema/workspaces/workspace.ts";
import { operation } from "#src/api/http/operation.ts";
import type { Client } from "#src/client.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { printRoutes } from "./print-routes.ts";

/** Compiles only if both types are equal. */
const isSameType = <A, B>(
  is: (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false,
): boolean => is;

/** Compiles only if the server has no such call. */
const isNever = <C>(is: [C] extends [never] ? true : false): boolean => is;

test("[WB-7] prints the type of each call from its route: shapes by their names, bodies, queries and bytes", async () => {
  const text = await printRoutes([
    { method: "GET", path: "/api/v2/workspaces/:workspace", hooks: { response: { 200: Workspace } } },
    {
      method: "PATCH",
      path: "/api/v2/workspaces/:workspace/",
      hooks: {
        body: Type.Object({ name: Type.Optional(Type.String()) }),
        query: Type.Object({ force: Type.Optional(Type.Boolean()) }),
        response: {
          200: Type.Array(Type.Object({ "last-seen": Type.Union([Type.Null(), Type.Integer()]) })),
          404: Type.String(),
        },
      },
    },
    { method: "POST", path: "/api/v2/files", hooks: { detail: operation({ accepts: ["application/zip"] }) } },
    { method: "GET", path: "/api/v2/secret", hooks: { detail: { hide: true } } },
    { method: "GET", path: "/healthz", hooks: {} },
  ]);
  expect(text).toContain('import type { Workspace } from "./workspaces/workspace.ts";');
  expect(text.slice(text.indexOf("export interface Routes"))).toBe(`export interface Routes {
  readonly files: {
    readonly POST: Route<unknown, Bytes, never>;
  };
  readonly workspaces: {
    readonly "{}": {
      readonly GET: Route<Workspace, undefined, never>;
      readonly PATCH: Route<({ "last-seen": null | number })[], { name?: string } | undefined, "force">;
    };
  };
}
`);
});

testInProcess("[WB-7] resolves a path to its route by names first, then by IDs, and ignores the query", () => {
  const checked = [
    isSameType<AnswerOf<CallAt<"GET", "/workspaces/:workspace">>, Workspace>(true),
    isSameType<AnswerOf<CallAt<"GET", `/workspaces/${string}/builds?limit=${number}`>>, Build[]>(true),
    isSameType<BodyOf<CallAt<"POST", `/workspaces/${string}/builds`>>, CreateBuild>(true),
    isSameType<BodyOf<CallAt<"GET", "/users/me">>, undefined>(true),
    isSameType<QueryOf<CallAt<"GET", "/workspaces">>, "q" | "limit" | "offset" | "after_id">(true),
    isNever<CallAt<"GET", "/workspace">>(true),
    isNever<CallAt<"DELETE", "/workspaces">>(true),
    isNever<CallAt<"GET", `/workspaces/${string}/build`>>(true),
    isNever<CallAt<"GET", "workspaces">>(true),
  ];
  expect(checked).not.toContain(false);
});

/** Marked lines must not compile; the type check reports each one that does. */
const checkTypes = async (client: Client, id: string) => {
  const workspace: Workspace = await client.get(`/api/v2/workspaces/${id}`);
  const [build] = await client.get(`/api/v2/workspaces/${workspace.id}/builds?limit=1`);
  await client.post(`/api/v2/workspaces/${id}/builds`, { transition: "start", log_level: "debug" });
  const path = `/api/v2/chats/${id}` as const;
  const { title } = await client.get(path);
  const listed = await client.get<Workspace[]>(`${title}/workspaces`);
  // @ts-expect-error: the server has no such path
  await client.get("/api/v2/workspace");
  // @ts-expect-error: a workspace has no such path
  await client.get(`/api/v2/workspaces/${id}/build`);
  // @ts-expect-error: the path has no such method
  await client.delete("/api/v2/workspaces");
  // @ts-expect-error: a build has no such member
  build?.transitions;
  // @ts-expect-error: a body has no such member
  await client.post(`/api/v2/workspaces/${id}/builds`, { transition: "start", loglevel: "debug" });
  // @ts-expect-error: the member has no such value
  await client.post(`/api/v2/workspaces/${id}/builds`, { transition: "begin" });
  // @ts-expect-error: the body is required
  await client.post(`/api/v2/workspaces/${id}/builds`);
  return listed;
};

testInProcess("[HT-32] a call whose path, method or body the server does not have does not compile", async () => {
  const requests: string[] = [];
  const client = {
    get: async (path: string) => {
      requests.push(path);
      return [{}];
    },
    post: async () => ({}),
    delete: async () => ({}),
  };
  await checkTypes(client as unknown as Client, "1");
  expect(requests[0]).toBe("/api/v2/workspaces/1");
});
