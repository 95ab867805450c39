// The dynamic form of a template version: which parameters apply for the given values, and their errors. Each request over WebSocket or
// POST gets one response. The version is fully checked before the upgrade (rules DY-5 to DY-7).

import { Value } from "@sinclair/typebox/value";
import { t } from "elysia";
import { tryParseJson } from "#base/json/read.ts";
import { log } from "#base/log.ts";
import { loadManifest, loadVisibleVersion, versionPath } from "#domain/template-versions/find.ts";
import { loadForm } from "#domain/template-versions/form.ts";
import { DynamicParameters, DynamicParametersRequest } from "#schema/workspaces/dynamic-parameters.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, Upgraded } from "../http/responses.ts";
import { closeWhenKeyRevoked } from "../http/revocation.ts";
import { routes } from "../http/routes.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";

const tags = ["Templates"];
const user = true;

/** Maximum characters of one request. */
const MAX_REQUEST_CHARS = 256 * 1024;

export const dynamicParameters = (ctx: ApiContext) =>
  routes({ prefix: "/templateversions/:templateversion/dynamic-parameters" })
    .use(callers)
    .get(
      "",
      async ({ caller, params, request }) => {
        const form = closeWhenKeyRevoked(
          ctx,
          caller,
          new Form(await makeEvaluator(ctx, params.templateversion, caller)),
        );
        return ctx.sockets.upgrade(request, form, { who: caller.user_id });
      },
      {
        user,
        params: versionPath,
        query: t.Object({
          user_id: t.Optional(t.String({ description: "The ID of the workspace's owner. It has no effect." })),
        }),
        response: { 101: Upgraded, ...fails(400, 401, 404, 412, 503) },
        detail: operation({
          tags,
          operationId: "openDynamicParameters",
          summary: "Open the parameter form of a template version",
          description:
            "A WebSocket. Each message `{id, inputs}` gets one response `{id, diagnostics, parameters}`. The first response is sent without a request and has the ID -1.",
          sends: DynamicParameters,
          takes: DynamicParametersRequest,
          access: "members",
          scope: "template:read",
          placement: "template_version",
        }),
      },
    )
    .post(
      "/evaluate",
      async ({ caller, params, body }) => {
        const { id = 0, inputs } = body;
        const evaluate = await makeEvaluator(ctx, params.templateversion, caller);
        return { id, ...(await evaluate(inputs, new AbortController().signal)) };
      },
      {
        user,
        params: versionPath,
        body: DynamicParametersRequest,
        response: { 200: DynamicParameters, ...fails(400, 401, 404, 412, 413) },
        detail: operation({
          tags,
          operationId: "evaluateDynamicParameters",
          summary: "Evaluate the parameters of a template version",
          description:
            "Returns the parameters for the given values, with their options, defaults and validation errors.",
          example: { id: 1, inputs: {}, owner_id: "me" },
          access: "members",
          scope: "template:read",
          placement: "template_version",
        }),
      },
    );

type EvaluateForm = (
  inputs: Readonly<Record<string, string>>,
  signal: AbortSignal,
) => Promise<Omit<DynamicParameters, "id">>;

/** Checks everything about the version; rejects with 404 and 412 like any other read of it. */
const makeEvaluator = async (ctx: ApiContext, id: string, caller: UserCaller): Promise<EvaluateForm> => {
  const found = await loadVisibleVersion(ctx, id, caller);
  const manifest = await loadManifest(ctx, found);
  return (inputs, signal) => loadForm(ctx, found.version, manifest, { inputs, user_id: caller.user_id }, signal);
};

/** Answers only the newest request: earlier requests that are still unanswered get no response. */
class Form implements SocketHandler {
  readonly #evaluate: EvaluateForm;
  #current = new AbortController();
  #isOpen = true;

  constructor(evaluate: EvaluateForm) {
    this.#evaluate = evaluate;
  }

  open(socket: Socket): void {
    void this.#respond(socket, { id: -1, inputs: {} });
  }

  message(socket: Socket, data: string | Uint8Array): void {
    const formRequest = parseRequest(data);
    if (!formRequest) socket.close(CLOSE.policy, "a message must be {id, inputs}");
    else void this.#respond(socket, formRequest);
  }

  close(): void {
    this.#isOpen = false;
    this.#current.abort(new Error("the form was closed"));
  }

  async #respond(socket: Socket, { id = 0, inputs }: DynamicParametersRequest): Promise<void> {
    this.#current.abort(new Error("a newer request arrived"));
    const controller = new AbortController();
    this.#current = controller;
    try {
      const form = await this.#evaluate(inputs, controller.signal);
      if (this.#isOpen && !controller.signal.aborted) socket.send(JSON.stringify({ id, ...form }));
    } catch (error) {
      if (controller.signal.aborted) return;
      log("templates").error("a form cannot be answered: {error}", { error });
      socket.close(CLOSE.policy, "the form cannot be answered");
    }
  }
}

const parseRequest = (data: string | Uint8Array): DynamicParametersRequest | undefined => {
  if (typeof data !== "string" || data.length > MAX_REQUEST_CHARS) return undefined;
  const value = tryParseJson(data);
  return Value.Check(DynamicParametersRequest, value) ? value : undefined;
};
