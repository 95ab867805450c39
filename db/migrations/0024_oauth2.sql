CREATE TABLE `oauth2_app_secrets` (
	`id` text PRIMARY KEY NOT NULL,
	`app_id` text NOT NULL,
	`secret_hash` text NOT NULL,
	`last_characters` text NOT NULL,
	`created_at` integer NOT NULL,
	`last_used_at` integer,
	FOREIGN KEY (`app_id`) REFERENCES `oauth2_apps`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `oauth2_app_secrets_app` ON `oauth2_app_secrets` (`app_id`);--> statement-breakpoint
CREATE TABLE `oauth2_apps` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`icon` text DEFAULT '' NOT NULL,
	`redirect_uris` text NOT NULL,
	`scopes` text DEFAULT '[]' NOT NULL,
	`auth_method` text NOT NULL,
	`self_registered` integer DEFAULT false NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `oauth2_apps_name` ON `oauth2_apps` (lower("name")) WHERE "oauth2_apps"."self_registered" = 0;--> statement-breakpoint
CREATE INDEX `oauth2_apps_registered` ON `oauth2_apps` (`self_registered`,`updated_at`);--> statement-breakpoint
CREATE TABLE `oauth2_grants` (
	`key_id` text PRIMARY KEY NOT NULL,
	`app_id` text NOT NULL,
	`user_id` text NOT NULL,
	`scopes` text NOT NULL,
	`redirect_uri` text NOT NULL,
	`code_hash` text NOT NULL,
	`code_challenge` text NOT NULL,
	`code_expires_at` integer NOT NULL,
	`redeemed_at` integer,
	`family_hash` text,
	`refresh_hash` text,
	`refresh_expires_at` integer,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	FOREIGN KEY (`key_id`) REFERENCES `api_keys`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`app_id`) REFERENCES `oauth2_apps`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `oauth2_grants_code` ON `oauth2_grants` (`code_hash`);--> statement-breakpoint
CREATE UNIQUE INDEX `oauth2_grants_family` ON `oauth2_grants` (`family_hash`) WHERE "oauth2_grants"."family_hash" is not null;--> statement-breakpoint
CREATE INDEX `oauth2_grants_user` ON `oauth2_grants` (`user_id`);--> statement-breakpoint
CREATE INDEX `oauth2_grants_app` ON `oauth2_grants` (`app_id`);