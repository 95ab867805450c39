CREATE TABLE `hook_dispatches` (
	`key` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`event` text NOT NULL,
	`chat_id` text NOT NULL,
	`owner_id` text NOT NULL,
	`tool_name` text,
	`mode` text NOT NULL,
	`source` text NOT NULL,
	`result` text NOT NULL,
	`created_at` integer NOT NULL,
	`duration_ms` integer NOT NULL,
	`request` text,
	`response` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `hook_dispatches_id_unique` ON `hook_dispatches` (`id`);--> statement-breakpoint
CREATE INDEX `hook_dispatches_chat` ON `hook_dispatches` (`chat_id`,`key`);--> statement-breakpoint
CREATE INDEX `hook_dispatches_created` ON `hook_dispatches` (`created_at`);--> statement-breakpoint
ALTER TABLE `messages` ADD `custom_prompt` text;--> statement-breakpoint
ALTER TABLE `queued_messages` ADD `custom_prompt` text;