// Every table, for Drizzle Kit (`bun run migration` compares them with the newest snapshot in db/migrations).
export * from "./agents.ts";
export * from "./app-statuses.ts";
export * from "./chat-files.ts";
export * from "./chat-runs.ts";
export * from "./chat-shares.ts";
export * from "./chats.ts";
export * from "./core.ts";
export * from "./external-auth.ts";
export * from "./git-ssh-keys.ts";
export * from "./jobs.ts";
export * from "./models.ts";
export * from "./port-shares.ts";
export * from "./provisioners.ts";
export * from "./templates.ts";
export * from "./usage.ts";
export * from "./users.ts";
export * from "./workspaces.ts";
