ALTER TABLE `workspace_snapshots` ADD `sealed_state` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `template_versions` ADD `has_snapshot_module` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `workspace_builds` ADD `sealed_snapshot_value` text DEFAULT '' NOT NULL;