// Settings that administrators make for all chats (facts/chats 4.15). Settings only they can read return 404 to others; settings everyone
// can read return 403 when others write them.
import { type Static, type TSchema, t } from "elysia";
import { DEFAULT_SYSTEM_PROMPT } from "#actors/chat/prompt/system-prompt.ts";
import { forbidden, invalidField, notFound } from "#base/errors.ts";
import { type ChatSettings, readChatSetting } from "#db/chats/settings.ts";
import { canConfigureChats } from "#domain/access.ts";
import { toPermissions } from "#domain/chats/permission-rules.ts";
import { cleanPrompt } from "#domain/chats/prompt-text.ts";
import { recordingForced, setChatSetting } from "#domain/chats/settings.ts";
import { ChatConfig } from "#schema/chats/chat-config.ts";
import { named } from "#schema/shape-names.ts";
import { writesSetting } from "../../audit/setting-targets.ts";
import type { ApiContext } from "../../context.ts";
import { callers, type UserCaller } from "../../http/caller.ts";
import { type Json, operation } from "../../http/operation.ts";
import { fails, NoContent } from "../../http/responses.ts";
import { routes } from "../../http/routes.ts";
import { MAX_CHAT_BODY_BYTES, tags } from "../paths.ts";

const user = true;
const MAX_DAYS = 3_650;
const MIN_TTL_MS = 60_000;
const MAX_TTL_MS = 30 * 24 * 3_600_000;

const requireReadable = (caller: UserCaller): void => {
  if (!canConfigureChats(caller)) throw notFound();
};
const requireWritable = (caller: UserCaller): void => {
  if (!canConfigureChats(caller)) throw forbidden("Only administrators can change this.");
};

const checkDays = (field: string, value: number): number => {
  if (value < 0 || value > MAX_DAYS) throw invalidField(field, "must be between 0 and 3650");
  return value;
};
const checkTtl = (field: string, value: number): number => {
  if (value === 0 || (value >= MIN_TTL_MS && value <= MAX_TTL_MS)) return value;
  throw invalidField(field, "must be 0, or between 60000 and 2592000000");
};

/** A setting that is the single member of its body. */
type SingleSetting = {
  path: string;
  setting: Exclude<keyof ChatSettings, "system_prompt" | "allow_debug_logging">;
  member: keyof typeof ChatConfig;
  /** Used in operation names such as `getRetentionDays`. */
  noun: string;
  /** A valid example value. */
  example: Json;
  summary: string;
  /** True if everyone can read it, not only administrators. */
  isReadableByAll?: boolean;
  /** True if the setting affects what runs in everyone's workspaces, as a user's own prompt and permissions do in theirs. */
  decidesWhatRuns?: boolean;
  check?: (field: string, value: never) => unknown;
};

const SINGLE_SETTINGS: readonly SingleSetting[] = [
  {
    path: "auto-archive-days",
    noun: "AutoArchiveDays",
    example: 90,
    setting: "auto_archive_days",
    member: "auto_archive_days",
    check: checkDays,
    isReadableByAll: true,
    summary: "the inactivity period after which chats are archived",
  },
  {
    path: "debug-retention-days",
    noun: "DebugRetentionDays",
    example: 30,
    setting: "debug_retention_days",
    member: "debug_retention_days",
    check: checkDays,
    summary: "the retention of recorded model calls",
  },
  {
    path: "retention-days",
    noun: "RetentionDays",
    example: 365,
    setting: "retention_days",
    member: "retention_days",
    check: checkDays,
    isReadableByAll: true,
    summary: "the retention of archived chats",
  },
  {
    path: "workspace-ttl",
    noun: "ChatWorkspaceTtl",
    example: 86_400_000,
    setting: "workspace_ttl_ms",
    member: "workspace_ttl_ms",
    check: checkTtl,
    isReadableByAll: true,
    summary: "the time to live of workspaces that chats create",
  },
  {
    path: "personal-model-overrides",
    noun: "PersonalModelOverrides",
    example: true,
    setting: "allow_model_overrides",
    member: "allow_users",
    summary: "whether users can choose their own models",
  },
  {
    path: "plan-mode-instructions",
    noun: "PlanModeInstructions",
    example: "End with a list of steps.",
    setting: "plan_mode_instructions",
    member: "plan_mode_instructions",
    check: cleanPrompt,
    decidesWhatRuns: true,
    summary: "the instructions for chats in plan mode",
  },
  {
    path: "default-permissions",
    noun: "DefaultPermissions",
    example: { default: "allow", rules: [{ tool: "execute", command: "rm", action: "ask" }] },
    setting: "permissions",
    member: "permissions",
    isReadableByAll: true,
    decidesWhatRuns: true,
    check: (_: string, given: never) => toPermissions(given),
    summary: "the default permissions of new chats",
  },
];

/** The body schema of each setting, by noun. */
const BODY_SCHEMAS = new Map(
  SINGLE_SETTINGS.map(({ noun, member }) => [noun, named(noun, t.Object({ [member]: ChatConfig[member] as TSchema }))]),
);

const singleSettingRoutes = (ctx: ApiContext, options: SingleSetting) => {
  const { path, setting, member, noun, example, summary, isReadableByAll, decidesWhatRuns, check } = options;
  const bodySchema = BODY_SCHEMAS.get(noun) as TSchema;
  const deniedStatuses = isReadableByAll ? [] : [404];
  return routes()
    .use(callers)
    .get(
      `/${path}`,
      async ({ caller }) => {
        if (!isReadableByAll) requireReadable(caller);
        return { [member]: await readChatSetting(ctx.store, setting) };
      },
      {
        user,
        response: { 200: bodySchema, ...fails(401, ...deniedStatuses) },
        detail: operation({
          tags,
          operationId: `get${noun}`,
          summary: `Get ${summary}`,
          access: isReadableByAll ? "users" : "admins_hidden",
          scope: "chat_config:read",
        }),
      },
    )
    .put(
      `/${path}`,
      async ({ caller, body, status }) => {
        requireWritable(caller);
        const value = (body as Record<string, never>)[member] as never;
        await setChatSetting(ctx, setting, (check?.(member, value) ?? value) as never);
        return status(204, undefined);
      },
      {
        user,
        body: bodySchema,
        response: { 204: NoContent, ...fails(400, 401, 403, 413) },
        detail: operation({
          tags,
          operationId: `set${noun}`,
          summary: `Update ${summary}`,
          access: "admins",
          outlivesGrant: true,
          scope: decidesWhatRuns ? ["chat_config:update", "workspace:ssh"] : "chat_config:update",
          example: { [member]: example },
          limit: MAX_CHAT_BODY_BYTES,
          audit: writesSetting(setting),
        }),
      },
    );
};

const { system_prompt, include_default_system_prompt, default_system_prompt } = ChatConfig;
const { allow_users, forced_by_deployment } = ChatConfig;
const SystemPrompt = named(
  "SystemPrompt",
  t.Object({ system_prompt, include_default_system_prompt, default_system_prompt }),
);
const DebugLogging = named("DebugLogging", t.Object({ allow_users, forced_by_deployment }));
const SetDebugLogging = named("SetDebugLogging", t.Object({ allow_users }));
const SystemPromptBody = named(
  "SetSystemPrompt",
  t.Object({
    system_prompt,
    include_default_system_prompt: t.Optional(include_default_system_prompt),
  }),
);

/** Routes below `/chats/config`. */
export const chatConfig = (ctx: ApiContext) =>
  SINGLE_SETTINGS.reduce(
    (app, setting) => app.use(singleSettingRoutes(ctx, setting)),
    routes({ prefix: "/config" }).use(callers),
  )
    .get(
      "/system-prompt",
      async ({ caller }) => {
        requireReadable(caller);
        const { text, include_default } = await readChatSetting(ctx.store, "system_prompt");
        return {
          system_prompt: text,
          include_default_system_prompt: include_default,
          default_system_prompt: DEFAULT_SYSTEM_PROMPT,
        };
      },
      {
        user,
        response: {
          200: SystemPrompt,
          ...fails(401, 404),
        },
        detail: operation({
          tags,
          operationId: "getSystemPrompt",
          summary: "Get the deployment's system prompt",
          access: "admins_hidden",
          scope: "chat_config:read",
        }),
      },
    )
    .put(
      "/system-prompt",
      async ({ caller, body, status }) => {
        requireWritable(caller);
        await setChatSetting(ctx, "system_prompt", await toPromptSetting(ctx, body));
        return status(204, undefined);
      },
      {
        user,
        body: SystemPromptBody,
        response: { 204: NoContent, ...fails(400, 401, 403, 413) },
        detail: operation({
          tags,
          operationId: "setSystemPrompt",
          summary: "Update the deployment's system prompt",
          description:
            "Sets the system prompt of all chats from the next model call. Without `include_default_system_prompt`, that option is unchanged; the first custom prompt replaces the default.",
          limit: MAX_CHAT_BODY_BYTES,
          audit: writesSetting("system_prompt"),
          example: { system_prompt: "Write commit messages in English.", include_default_system_prompt: true },
          access: "admins",
          outlivesGrant: true,
          scope: ["chat_config:update", "workspace:ssh"],
        }),
      },
    )
    .get(
      "/debug-logging",
      async ({ caller }) => {
        requireReadable(caller);
        return {
          allow_users: await readChatSetting(ctx.store, "allow_debug_logging"),
          forced_by_deployment: ctx.config.chat_debug_logging,
        };
      },
      {
        user,
        response: { 200: DebugLogging, ...fails(401, 404) },
        detail: operation({
          tags,
          operationId: "getDebugLogging",
          summary: "Get whether users can record model calls",
          access: "admins_hidden",
          scope: "chat_config:read",
        }),
      },
    )
    .put(
      "/debug-logging",
      async ({ caller, body, status }) => {
        requireWritable(caller);
        if (ctx.config.chat_debug_logging) throw recordingForced();
        await setChatSetting(ctx, "allow_debug_logging", body.allow_users);
        return status(204, undefined);
      },
      {
        user,
        body: SetDebugLogging,
        response: { 204: NoContent, ...fails(400, 401, 403, 409, 413) },
        detail: operation({
          tags,
          operationId: "setDebugLogging",
          summary: "Update whether users can record model calls",
          limit: MAX_CHAT_BODY_BYTES,
          audit: writesSetting("allow_debug_logging"),
          example: { allow_users: true },
          access: "admins",
          outlivesGrant: true,
          scope: "chat_config:update",
        }),
      },
    );

/**
 * Handles a custom prompt without a flag about the default prompt: the first custom prompt replaces the default one, and later ones leave
 * the flag unchanged.
 */
const toPromptSetting = async (
  { store }: ApiContext,
  body: Static<typeof SystemPromptBody>,
): Promise<ChatSettings["system_prompt"]> => {
  const text = cleanPrompt("system_prompt", body.system_prompt);
  const current = await readChatSetting(store, "system_prompt");
  const isFirstPrompt = current.text === "" && current.include_default && text !== "";
  return {
    text,
    include_default: body.include_default_system_prompt ?? (isFirstPrompt ? false : current.include_default),
  };
};
