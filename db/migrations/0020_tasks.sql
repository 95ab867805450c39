CREATE TABLE `tasks` (
	`id` text PRIMARY KEY NOT NULL,
	`organization_id` text NOT NULL,
	`owner_id` text NOT NULL,
	`name` text NOT NULL,
	`display_name` text NOT NULL,
	`workspace_id` text NOT NULL,
	`chat_id` text NOT NULL,
	`prompt` text NOT NULL,
	`model_config_id` text,
	`reasoning_effort` text DEFAULT '' NOT NULL,
	`delivered_at` integer,
	`problem` text DEFAULT '' NOT NULL,
	`snapshot` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`deleted` integer DEFAULT false NOT NULL,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`owner_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`workspace_id`) REFERENCES `workspaces`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `tasks_workspace_id_unique` ON `tasks` (`workspace_id`);--> statement-breakpoint
CREATE INDEX `tasks_name` ON `tasks` (`owner_id`,lower("name"));--> statement-breakpoint
CREATE INDEX `tasks_created` ON `tasks` (`created_at`) WHERE "tasks"."deleted" = 0;--> statement-breakpoint
ALTER TABLE `workspaces` ADD `task_id` text;