// Wire shapes of apps and their statuses (specification "App", "App status", facts/platform 1.1).
import { type Static, Type as t } from "@sinclair/typebox";
import { iconUrl } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";

/** The protocol's enum starts at 1. */
export const APP_HEALTHS = ["disabled", "initializing", "healthy", "unhealthy"] as const;
export type AppHealth = (typeof APP_HEALTHS)[number];
/** The protocol's enum starts at 1. */
export const SHARING_LEVELS = ["owner", "authenticated", "public", "organization"] as const;
/** The protocol's enum starts at 0. */
export const APP_STATES = ["working", "idle", "complete", "failure"] as const;
export type AppState = (typeof APP_STATES)[number];

const state = named(
  "WorkspaceAppState",
  oneOf(
    APP_STATES,
    "What the app is doing. `idle`: it waits, for example for its user. `complete`, `failure`: how its work ended.",
  ),
);

export const AppStatus = namedObject("WorkspaceAppStatus", {
  id: t.String({ format: "uuid" }),
  agent_id: t.String({ format: "uuid" }),
  app_id: t.String({ format: "uuid" }),
  workspace_id: t.String({ format: "uuid" }),
  created_at: t.String({ format: "date-time" }),
  state,
  message: t.String({ description: "A sentence about the state; may be empty." }),
  uri: t.String({ description: "A link to the result, such as a pull request; may be empty." }),
  icon: t.String({ description: "The icon that the app reported; may be empty." }),
  needs_user_attention: t.Boolean({ description: "Whether the app waits for its user." }),
});
export type AppStatus = Static<typeof AppStatus>;

/** Maximum length of a status message: bytes over REST, characters over the agent protocol (facts/platform 3.6, facts/wire 1.5). */
export const STATUS_MESSAGE = 160;

export const PatchAppStatus = namedObject("PatchAppStatus", {
  app_slug: t.String({ maxLength: 4096, description: "The slug of an app of this agent." }),
  state,
  message: t.Optional(
    t.String({
      maxLength: STATUS_MESSAGE,
      description: "The status message, at most 160 bytes of UTF-8. Control characters are removed.",
    }),
  ),
  uri: t.Optional(
    t.String({ maxLength: 4096, description: "A link to the result, such as a pull request. Stored unchanged." }),
  ),
  icon: t.Optional(
    t.String({ maxLength: 1024, description: "The icon: a URL or a path on this server. Other values are ignored." }),
  ),
  needs_user_attention: t.Optional(t.Boolean({ description: "Whether the app waits for its user." })),
});

export const App = namedObject("WorkspaceApp", {
  id: t.String({ format: "uuid" }),
  slug: t.String({ description: "The name of the app in URLs and commands; unique within its agent." }),
  display_name: t.String(),
  command: t.String({
    description: "The command that runs in a terminal when the app is opened; empty if the app has a URL.",
  }),
  url: t.String({ description: "The URL of the app, as the agent reaches it; empty if the app has a command." }),
  external: t.Boolean({ description: "Whether the URL is opened directly, not through the server." }),
  subdomain: t.Boolean({ description: "Whether the app is opened on its own host instead of a path on the server." }),
  subdomain_name: t.String({
    description:
      "The app's DNS label under the wildcard host; empty if the app has no subdomain or the server has no wildcard host.",
  }),
  hidden: t.Boolean({ description: "Whether user interfaces don't show the app." }),
  group: t.String({ description: "The heading under which user interfaces show the app; may be empty." }),
  icon: iconUrl,
  tooltip: t.String({ description: "Text that user interfaces show for the app; may be empty." }),
  health: named(
    "WorkspaceAppHealth",
    oneOf(
      APP_HEALTHS,
      "The health of the app. `disabled`: it has no health check. `initializing`: no check has succeeded or failed yet.",
    ),
  ),
  healthcheck: t.Object({
    url: t.String({ description: "The URL that the agent requests; empty if there is no health check." }),
    interval: t.Integer({ description: "The interval between checks, in seconds." }),
    threshold: t.Integer({ description: "The number of consecutive failures after which the app is unhealthy." }),
  }),
  open_in: oneOf(
    ["slim-window", "tab"],
    "Where browsers open the app: in a small window without toolbars, or in a tab.",
  ),
  sharing_level: named(
    "WorkspaceAppSharingLevel",
    oneOf(
      SHARING_LEVELS,
      "Who can open the app: the owner, all signed-in users, everyone, or members of the organization. Limited by the template's `max_port_share_level`.",
    ),
  ),
  statuses: t.Array(AppStatus, { description: "The latest statuses that the app reported, newest first." }),
});
export type App = Static<typeof App>;
