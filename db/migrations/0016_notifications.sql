CREATE TABLE `notification_deliveries` (
	`key` integer PRIMARY KEY NOT NULL,
	`notification_id` text NOT NULL,
	`user_id` text NOT NULL,
	`method` text NOT NULL,
	`subscription_id` text,
	`attempts` integer DEFAULT 0 NOT NULL,
	`due` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `notification_deliveries_due` ON `notification_deliveries` (`due`);--> statement-breakpoint
CREATE TABLE `notification_preferences` (
	`user_id` text NOT NULL,
	`template_id` text NOT NULL,
	`disabled` integer NOT NULL,
	`updated_at` integer NOT NULL,
	PRIMARY KEY(`user_id`, `template_id`),
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE TABLE `notifications` (
	`key` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`user_id` text NOT NULL,
	`template_id` text NOT NULL,
	`targets` text DEFAULT '[]' NOT NULL,
	`title` text NOT NULL,
	`content` text NOT NULL,
	`icon` text DEFAULT '' NOT NULL,
	`actions` text DEFAULT '[]' NOT NULL,
	`dedupe` text NOT NULL,
	`created_at` integer NOT NULL,
	`read_at` integer,
	`dispatched_at` integer,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `notifications_id_unique` ON `notifications` (`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `notifications_dedupe` ON `notifications` (`user_id`,`dedupe`);--> statement-breakpoint
CREATE INDEX `notifications_inbox` ON `notifications` (`user_id`,`key`);--> statement-breakpoint
CREATE INDEX `notifications_undispatched` ON `notifications` (`key`) WHERE "notifications"."dispatched_at" is null;--> statement-breakpoint
CREATE INDEX `notifications_created` ON `notifications` (`created_at`);--> statement-breakpoint
CREATE TABLE `webpush_subscriptions` (
	`id` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`endpoint_hash` text NOT NULL,
	`sealed` text NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `webpush_subscriptions_endpoint` ON `webpush_subscriptions` (`user_id`,`endpoint_hash`);