CREATE TABLE `user_secrets` (
	`id` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`name` text NOT NULL,
	`description` text DEFAULT '' NOT NULL,
	`env_name` text DEFAULT '' NOT NULL,
	`file_path` text DEFAULT '' NOT NULL,
	`sealed_value` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `user_secrets_name` ON `user_secrets` (`user_id`,lower("name"));--> statement-breakpoint
CREATE UNIQUE INDEX `user_secrets_env` ON `user_secrets` (`user_id`,`env_name`) WHERE "user_secrets"."env_name" <> '';--> statement-breakpoint
CREATE UNIQUE INDEX `user_secrets_file` ON `user_secrets` (`user_id`,`file_path`) WHERE "user_secrets"."file_path" <> '';