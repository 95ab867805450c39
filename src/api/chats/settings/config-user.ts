// A user's settings for their own chats (facts/chats 4.15): a prompt, recording of model calls, and the compaction threshold.
import { t } from "elysia";
import { readChatSetting, readCompactionThresholds, readUserChatSetting } from "#db/chats/settings.ts";
import { cleanPrompt } from "#domain/chats/prompt-text.ts";
import { setCompactionThreshold, setOwnRecording, setUserChatSetting } from "#domain/chats/settings.ts";
import { ChatConfig, CompactionThreshold } from "#schema/chats/chat-config.ts";
import { named } from "#schema/shape-names.ts";
import * as setting from "../../audit/setting-targets.ts";
import * as target from "../../audit/targets.ts";
import type { ApiContext } from "../../context.ts";
import { callers } from "../../http/caller.ts";
import { operation } from "../../http/operation.ts";
import { fails, NoContent } from "../../http/responses.ts";
import { routes } from "../../http/routes.ts";
import { MAX_CHAT_BODY_BYTES, tags } from "../paths.ts";

const user = true;
const { custom_prompt, debug_logging_enabled, user_toggle_allowed, forced_by_deployment } = ChatConfig;
const SetCompactionThreshold = named(
  "SetCompactionThreshold",
  t.Object({ threshold_percent: CompactionThreshold.properties.threshold_percent }),
);
const UserPrompt = named("UserPrompt", t.Object({ custom_prompt }));
const CompactionThresholds = named("CompactionThresholds", t.Object({ thresholds: t.Array(CompactionThreshold) }));
const UserDebugLogging = named(
  "UserDebugLogging",
  t.Object({ debug_logging_enabled, user_toggle_allowed, forced_by_deployment }),
);
const SetUserDebugLogging = named("SetUserDebugLogging", t.Object({ debug_logging_enabled }));
const modelPath = t.Object({ model: t.String({ format: "uuid", description: "The ID of the model configuration." }) });

/** Routes below `/chats/config`. */
export const userChatConfig = (ctx: ApiContext) =>
  routes({ prefix: "/config" })
    .use(callers)
    .get(
      "/user-prompt",
      async ({ caller }) => ({ custom_prompt: await readUserChatSetting(ctx.store, caller.user_id, "prompt") }),
      {
        user,
        response: { 200: UserPrompt, ...fails(401) },
        detail: operation({
          tags,
          operationId: "getUserPrompt",
          summary: "Get your system prompt",
          access: "users",
          scope: "chat_config:read",
        }),
      },
    )
    .put(
      "/user-prompt",
      async ({ caller, body }) => {
        const text = cleanPrompt("custom_prompt", body.custom_prompt);
        await setUserChatSetting(ctx, caller, "prompt", text);
        return { custom_prompt: text };
      },
      {
        user,
        body: UserPrompt,
        response: { 200: UserPrompt, ...fails(400, 401, 413) },
        detail: operation({
          tags,
          operationId: "setUserPrompt",
          summary: "Update your system prompt",
          description: "Sets your system prompt and returns the stored text.",
          limit: MAX_CHAT_BODY_BYTES,
          audit: setting.writesUserSetting("prompt"),
          example: { custom_prompt: "Answer in short sentences." },
          access: "users",
          outlivesGrant: true,
          scope: ["chat_config:update", "workspace:ssh"],
        }),
      },
    )
    .get(
      "/user-debug-logging",
      async ({ caller }) => {
        const isForced = ctx.config.chat_debug_logging;
        const isAllowed = await readChatSetting(ctx.store, "allow_debug_logging");
        const isEnabled = await readUserChatSetting(ctx.store, caller.user_id, "debug_logging");
        return {
          debug_logging_enabled: isForced || (isAllowed && isEnabled),
          user_toggle_allowed: isAllowed && !isForced,
          forced_by_deployment: isForced,
        };
      },
      {
        user,
        response: {
          200: UserDebugLogging,
          ...fails(401),
        },
        detail: operation({
          tags,
          operationId: "getUserDebugLogging",
          summary: "Get whether your model calls are recorded",
          access: "users",
          scope: "chat_config:read",
        }),
      },
    )
    .put(
      "/user-debug-logging",
      async ({ caller, body, status }) => {
        await setOwnRecording(ctx, caller, body.debug_logging_enabled);
        return status(204, undefined);
      },
      {
        user,
        body: SetUserDebugLogging,
        response: { 204: NoContent, ...fails(400, 401, 403, 409, 413) },
        detail: operation({
          tags,
          operationId: "setUserDebugLogging",
          summary: "Update whether your model calls are recorded",
          limit: MAX_CHAT_BODY_BYTES,
          audit: setting.writesUserSetting("debug_logging"),
          example: { debug_logging_enabled: true },
          access: "users",
          scope: "chat_config:update",
        }),
      },
    )
    .get(
      "/user-compaction-thresholds",
      async ({ caller }) => {
        const rows = await readCompactionThresholds(ctx.store, caller.user_id);
        return {
          thresholds: rows.map(([model_config_id, threshold_percent]) => ({ model_config_id, threshold_percent })),
        };
      },
      {
        user,
        response: { 200: CompactionThresholds, ...fails(401) },
        detail: operation({
          tags,
          operationId: "listCompactionThresholds",
          summary: "List your compaction thresholds by model",
          access: "users",
          scope: "chat_config:read",
        }),
      },
    )
    .put(
      "/user-compaction-thresholds/:model",
      async ({ caller, params, body, status }) => {
        await setCompactionThreshold(ctx, caller, params.model.toLowerCase(), body.threshold_percent);
        return status(204, undefined);
      },
      {
        user,
        params: modelPath,
        body: SetCompactionThreshold,
        response: { 204: NoContent, ...fails(400, 401, 404, 413) },
        detail: operation({
          tags,
          operationId: "setCompactionThreshold",
          summary: "Update your compaction threshold for a model",
          audit: target.writes(setting.newThreshold),
          example: { threshold_percent: 70 },
          access: "users",
          scope: "chat_config:update",
        }),
      },
    )
    .delete(
      "/user-compaction-thresholds/:model",
      async ({ caller, params, status }) => {
        await setCompactionThreshold(ctx, caller, params.model.toLowerCase(), null);
        return status(204, undefined);
      },
      {
        user,
        params: modelPath,
        response: { 204: NoContent, ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "deleteCompactionThreshold",
          summary: "Reset your compaction threshold for a model",
          audit: target.writes(setting.threshold),
          access: "users",
          scope: "chat_config:update",
        }),
      },
    );
