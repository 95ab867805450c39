CREATE TABLE `connection_logs` (
	`key` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`connect_time` integer NOT NULL,
	`disconnect_time` integer,
	`disconnect_reason` text DEFAULT '' NOT NULL,
	`status_code` integer,
	`type` text NOT NULL,
	`organization_id` text NOT NULL,
	`workspace_id` text NOT NULL,
	`workspace_name` text NOT NULL,
	`owner_id` text NOT NULL,
	`agent_id` text NOT NULL,
	`agent_name` text NOT NULL,
	`connection_id` text,
	`user_id` text,
	`ip` text,
	`user_agent` text DEFAULT '' NOT NULL,
	`target` text DEFAULT '' NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `connection_logs_id_unique` ON `connection_logs` (`id`);--> statement-breakpoint
CREATE INDEX `connection_logs_time` ON `connection_logs` (`connect_time`);--> statement-breakpoint
CREATE INDEX `connection_logs_organization` ON `connection_logs` (`organization_id`,`connect_time`);--> statement-breakpoint
CREATE INDEX `connection_logs_workspace` ON `connection_logs` (`workspace_id`,`connect_time`);--> statement-breakpoint
CREATE INDEX `connection_logs_owner` ON `connection_logs` (`owner_id`,`connect_time`);--> statement-breakpoint
CREATE INDEX `connection_logs_user` ON `connection_logs` (`user_id`,`connect_time`);--> statement-breakpoint
CREATE INDEX `connection_logs_type` ON `connection_logs` (`type`,`connect_time`);--> statement-breakpoint
CREATE INDEX `connection_logs_open` ON `connection_logs` (`agent_id`) WHERE "connection_logs"."disconnect_time" is null;--> statement-breakpoint
CREATE UNIQUE INDEX `connection_logs_reported` ON `connection_logs` (`agent_id`,`connection_id`);