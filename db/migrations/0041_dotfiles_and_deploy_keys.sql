CREATE TABLE `deploy_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`url` text NOT NULL,
	`ssh_url` text NOT NULL,
	`repository` text NOT NULL,
	`ssh_repository` text NOT NULL,
	`public_key` text NOT NULL,
	`sealed_private_key` text NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `deploy_keys_repository` ON `deploy_keys` (`user_id`,`repository`);--> statement-breakpoint
ALTER TABLE `agent_scripts` ADD `is_dotfiles` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `templates` ADD `allow_dotfiles` integer DEFAULT true NOT NULL;--> statement-breakpoint
ALTER TABLE `users` ADD `dotfiles_url` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `users` ADD `dotfiles_branch` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `users` ADD `dotfiles_install_command` text DEFAULT '' NOT NULL;