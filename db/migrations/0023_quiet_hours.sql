ALTER TABLE `users` ADD `quiet_hours_schedule` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `users` ADD `task_notification_alert_dismissed` integer DEFAULT false NOT NULL;