ALTER TABLE `api_keys` ADD `parent_id` text REFERENCES api_keys(id) ON DELETE CASCADE;--> statement-breakpoint
ALTER TABLE `api_keys` ADD `workspace_id` text;--> statement-breakpoint
CREATE INDEX `api_keys_parent` ON `api_keys` (`parent_id`) WHERE "api_keys"."parent_id" is not null;