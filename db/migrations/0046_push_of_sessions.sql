ALTER TABLE `webpush_subscriptions` ADD `key_id` text REFERENCES api_keys(id) ON DELETE cascade;
--> statement-breakpoint
CREATE INDEX `webpush_subscriptions_key` ON `webpush_subscriptions` (`key_id`);
--> statement-breakpoint
DELETE FROM `webpush_subscriptions`;
