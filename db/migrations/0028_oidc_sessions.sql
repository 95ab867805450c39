CREATE TABLE `oidc_sessions` (
	`key_id` text PRIMARY KEY NOT NULL,
	`provider` text NOT NULL,
	`sealed_tokens` text NOT NULL,
	`has_refresh_token` integer NOT NULL,
	`checked_at` integer NOT NULL,
	FOREIGN KEY (`key_id`) REFERENCES `api_keys`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `oidc_sessions_checked` ON `oidc_sessions` (`checked_at`);--> statement-breakpoint
ALTER TABLE `oidc_links` ADD `username` text;--> statement-breakpoint
ALTER TABLE `oidc_links` ADD `name` text;