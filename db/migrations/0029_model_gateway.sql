CREATE TABLE `model_reservations` (
	`id` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`workspace_id` text NOT NULL,
	`key_id` text NOT NULL,
	`provider_id` text NOT NULL,
	`model_config_id` text NOT NULL,
	`asked_model` text NOT NULL,
	`model` text NOT NULL,
	`reserved_micros` integer NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `model_reservations_user` ON `model_reservations` (`user_id`);--> statement-breakpoint
ALTER TABLE `model_spend` ADD `workspace_id` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `model_spend` ADD `key_id` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `model_spend` ADD `provider_id` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `model_spend` ADD `asked_model` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `model_spend` ADD `model` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `model_spend` ADD `outcome` text DEFAULT 'ok' NOT NULL;--> statement-breakpoint
ALTER TABLE `model_spend` ADD `is_estimated` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `model_spend` ADD `first_byte_ms` integer;--> statement-breakpoint
ALTER TABLE `model_spend` ADD `duration_ms` integer;--> statement-breakpoint
ALTER TABLE `model_spend` ADD `provider_request_id` text DEFAULT '' NOT NULL;