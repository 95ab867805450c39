// Trials of a chat: one prompt tried in several forks of the chat's workspace, at most one of which is kept.
import { t } from "elysia";
import { loadOwnChat } from "#domain/chats/find.ts";
import { discardTrial, keepWay, stopTrial } from "#domain/trials/change.ts";
import { createTrial } from "#domain/trials/create.ts";
import { loadTrial, readTrialDiff, readTrials } from "#domain/trials/find.ts";
import { presentTrial } from "#domain/trials/present.ts";
import { CreateTrial, KeepWay, Trial, TrialDiff, Trials } from "#schema/chats/trial.ts";
import { LimitReached } from "#schema/chats/usage-limit.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { requireScope } from "../http/scope-gate.ts";
import { chatPath, MAX_CHAT_BODY_BYTES, parseNumber, tags } from "./paths.ts";

const user = true;
const params = t.Object({
  ...chatPath.properties,
  trial: t.String({ format: "uuid", description: "The ID of the trial." }),
});

export const chatTrials = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get("/:chat/trials", ({ caller, params }) => readTrials(ctx, params.chat, caller), {
      user,
      params: chatPath,
      response: { 200: Trials, ...fails(400, 401, 404) },
      detail: operation({
        tags,
        operationId: "listTrials",
        summary: "List trials of a chat",
        description:
          "Returns an empty list to everyone but the chat's owner. `GET /api/v2/chats/watch` sends `trial_change` when a trial changes.",
        access: "owner",
        scope: "chat:read",
        placement: "chat",
      }),
    })
    .post(
      "/:chat/trials",
      async ({ caller, params, body, status }) => {
        // The chat's permissions do not apply to the command.
        if ((body.check_command ?? "").trim() !== "") requireScope(caller, "workspace:ssh");
        return status(201, await createTrial(ctx, await loadOwnChat(ctx, params.chat, caller), body, caller));
      },
      {
        user,
        params: chatPath,
        body: CreateTrial,
        response: { 201: Trial, ...fails(400, 401, 403, 404, 406, 410, 413, 503), 409: LimitReached },
        detail: operation({
          tags,
          operationId: "createTrial",
          summary: "Create a trial",
          description:
            "Tries several ways to solve a task. Creates a fork of the chat's workspace and a copy of the chat for each way, and sends each copy its prompt. When a turn ends, the check command runs in its fork. Afterwards, keep one way or discard all. A key with scopes also needs `workspace:ssh` to set a check command.",
          limit: MAX_CHAT_BODY_BYTES,
          example: { count: 3, prompt: "Fix the failing test.", check_command: "npm test" },
          access: "owner_only",
          scope: ["chat:update", "workspace:update", "workspace:create", "template:use"],
          placement: "chat_workspace",
        }),
      },
    )
    .get(
      "/:chat/trials/:trial",
      async ({ caller, params }) => presentTrial(ctx, await loadTrial(ctx, params, caller)),
      {
        user,
        params,
        response: { 200: Trial, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "getTrial",
          summary: "Get a trial",
          access: "owner_only",
          scope: "chat:read",
          placement: "chat",
        }),
      },
    )
    .get(
      "/:chat/trials/:trial/ways/:way/diff",
      async ({ caller, params }) =>
        readTrialDiff(ctx, await loadTrial(ctx, params, caller), parseNumber("way", params.way)),
      {
        user,
        params: t.Object({ ...params.properties, way: t.String({ description: "The number of the way." }) }),
        response: { 200: TrialDiff, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "getTrialDiff",
          summary: "Get the changes of a way",
          description:
            "Returns the changes since the way's chat got the prompt. Returns 404 until the changes have been determined.",
          access: "owner_only",
          scope: "chat:read",
          placement: "chat",
        }),
      },
    )
    .post(
      "/:chat/trials/:trial/stop",
      async ({ caller, params }) => stopTrial(ctx, await loadTrial(ctx, params, caller)),
      {
        user,
        params,
        response: { 200: Trial, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "stopTrial",
          summary: "Stop a trial",
          description:
            "Interrupts the turns of all ways and stops their checks. The forks remain until a way is kept or all are discarded.",
          access: "owner_only",
          scope: "chat:update",
          placement: "trial",
        }),
      },
    )
    .post(
      "/:chat/trials/:trial/keep",
      async ({ caller, params, body }) => keepWay(ctx, await loadTrial(ctx, params, caller), body.way, caller),
      {
        user,
        params,
        body: KeepWay,
        response: { 200: Trial, ...fails(400, 401, 403, 404, 409, 410, 413) },
        detail: operation({
          tags,
          operationId: "keepTrialWay",
          summary: "Keep one way of a trial",
          description:
            "Replaces the files of the chat's workspace with those of the way, after creating a snapshot. A running workspace is restarted. The chat of the way continues in that workspace. All forks are moved to the trash, and the chats of the other ways are archived.",
          example: { way: 2 },
          access: "owner_only",
          scope: ["chat:update", "workspace:update", "workspace:delete", "workspace:ssh"],
          placement: "trial",
        }),
      },
    )
    .post(
      "/:chat/trials/:trial/discard",
      async ({ caller, params }) => discardTrial(ctx, await loadTrial(ctx, params, caller)),
      {
        user,
        params,
        response: { 200: Trial, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "discardTrial",
          summary: "Discard a trial",
          description:
            "Moves all forks to the trash and archives the chats of the ways. The chat's workspace is unchanged.",
          access: "owner_only",
          scope: ["chat:update", "workspace:delete"],
          placement: "trial",
        }),
      },
    );
