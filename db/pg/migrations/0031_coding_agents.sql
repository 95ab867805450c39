alter table "chats" add column "coding_agent" text;
--> statement-breakpoint
alter table "chats" add column "agent_session" text;
