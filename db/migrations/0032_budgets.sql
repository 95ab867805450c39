CREATE TABLE `budget_periods` (
	`budget_id` text NOT NULL,
	`begins_at` integer NOT NULL,
	`ends_at` integer NOT NULL,
	`unit` text NOT NULL,
	`spent` integer NOT NULL,
	`extra` integer DEFAULT 0 NOT NULL,
	`warned_at` integer,
	PRIMARY KEY(`budget_id`, `begins_at`, `ends_at`)
);
--> statement-breakpoint
CREATE INDEX `budget_periods_end` ON `budget_periods` (`ends_at`);--> statement-breakpoint
CREATE TABLE `budgets` (
	`id` text PRIMARY KEY NOT NULL,
	`scope` text NOT NULL,
	`scope_id` text NOT NULL,
	`period` text NOT NULL,
	`unit` text NOT NULL,
	`amount` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `budgets_scope` ON `budgets` (`scope`,`scope_id`,`period`,`unit`);--> statement-breakpoint
ALTER TABLE `chats` ADD `budget_pause` text;--> statement-breakpoint
CREATE INDEX `chats_budget_pause` ON `chats` (`key`) WHERE "chats"."budget_pause" is not null;--> statement-breakpoint
ALTER TABLE `model_reservations` ADD `reserved_tokens` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `model_reservations` ADD `alive_until` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `model_reservations` ADD `kind` text DEFAULT 'gateway' NOT NULL;--> statement-breakpoint
ALTER TABLE `model_reservations` ADD `chat_id` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `model_reservations` ADD `root_chat_id` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `model_reservations` ADD `organization_id` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `model_reservations` ADD `template_id` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `model_spend` ADD `organization_id` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `model_spend` ADD `template_id` text DEFAULT '' NOT NULL;