// The live form of a template version: for the values given, which parameters are asked and what is wrong with them. One answer to
// each request, by WebSocket or by POST; everything about the version is checked before the upgrade (rules DY-5 to DY-7).
import { Value } from "@sinclair/typebox/value";
import { Elysia, t } from "elysia";
import { manifestOf, versionAt, versionPath } from "#domain/template-versions/version.ts";
import { DynamicParameters, DynamicParametersRequest } from "#schema/dynamic-parameters.ts";
import type { Manifest } from "#schema/manifest.ts";
import { evaluate } from "#src/provisioners/dynamic.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { fails, Upgraded } from "../http/responses.ts";
import { closeWhenKeyGone } from "../http/revocation.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";

const tags = ["Templates"];
const user = true;

/** Characters of one request. */
const REQUEST_LIMIT = 256 * 1024;

export const dynamicParameters = (ctx: ApiContext) =>
  new Elysia({ prefix: "/templateversions/:templateversion/dynamic-parameters" })
    .use(callers)
    .get(
      "",
      async ({ caller, params, request }) => {
        const manifest = await manifestOf(ctx, await versionAt(ctx, params.templateversion, caller));
        const form = closeWhenKeyGone(ctx, caller, new Form(manifest));
        return ctx.sockets.upgrade(request, form, { who: caller.user_id });
      },
      {
        user,
        params: versionPath,
        query: t.Object({
          user_id: t.Optional(t.String({ description: "For whom the workspace would be; changes nothing here." })),
        }),
        response: { 101: Upgraded, ...fails(400, 401, 404, 412, 503) },
        detail: {
          tags,
          summary: "Live form of a template version",
          description:
            "A WebSocket: each message {id, inputs} is answered by one {id, diagnostics, parameters}. The first answer comes unasked and has the id -1.",
        },
      },
    )
    .post(
      "/evaluate",
      async ({ caller, params, body }) => {
        const manifest = await manifestOf(ctx, await versionAt(ctx, params.templateversion, caller));
        return answer(manifest, body);
      },
      {
        user,
        params: versionPath,
        body: DynamicParametersRequest,
        response: { 200: DynamicParameters, ...fails(400, 401, 404, 412, 413) },
        detail: {
          tags,
          summary: "Parameters of a template version for some values",
          description: "Which are asked, with which options and defaults, and what is wrong with each.",
        },
      },
    );

const answer = (manifest: Manifest, { id = 0, inputs }: DynamicParametersRequest): DynamicParameters => ({
  id,
  ...evaluate(manifest, inputs),
});

class Form implements SocketHandler {
  readonly #manifest: Manifest;

  constructor(manifest: Manifest) {
    this.#manifest = manifest;
  }

  open(socket: Socket): void {
    socket.send(JSON.stringify(answer(this.#manifest, { id: -1, inputs: {} })));
  }

  message(socket: Socket, data: string | Uint8Array): void {
    const asked = requestIn(data);
    if (!asked) socket.close(CLOSE.policy, "a message must be {id, inputs}");
    else socket.send(JSON.stringify(answer(this.#manifest, asked)));
  }
}

const requestIn = (data: string | Uint8Array): DynamicParametersRequest | undefined => {
  if (typeof data !== "string" || data.length > REQUEST_LIMIT) return undefined;
  try {
    const value: unknown = JSON.parse(data);
    return Value.Check(DynamicParametersRequest, value) ? value : undefined;
  } catch {
    return undefined;
  }
};
