ALTER TABLE `chats` ADD `coding_agent` text;--> statement-breakpoint
ALTER TABLE `chats` ADD `agent_session` text;