CREATE TABLE `usage_blocks` (
	`block` integer PRIMARY KEY NOT NULL,
	`version` integer NOT NULL
);
--> statement-breakpoint
DROP INDEX `audit_logs_type`;--> statement-breakpoint
DROP INDEX `audit_logs_type_action`;--> statement-breakpoint
DROP INDEX `audit_logs_action`;--> statement-breakpoint
DROP INDEX `audit_logs_reason`;--> statement-breakpoint
DROP INDEX `audit_logs_organization`;--> statement-breakpoint
DROP INDEX `audit_logs_user`;--> statement-breakpoint
DROP INDEX `audit_logs_target`;--> statement-breakpoint
DROP INDEX `audit_logs_request`;--> statement-breakpoint
CREATE INDEX `audit_logs_kind` ON `audit_logs` (`resource_type`,`action`,`build_reason`,`time`);--> statement-breakpoint
CREATE INDEX `audit_logs_organization` ON `audit_logs` (`organization_id`,`resource_type`,`action`,`build_reason`,`time`);--> statement-breakpoint
CREATE INDEX `audit_logs_user` ON `audit_logs` (`user_id`,`organization_id`,`resource_type`,`action`,`build_reason`,`time`);--> statement-breakpoint
CREATE INDEX `audit_logs_target` ON `audit_logs` (lower("resource_target"),`time`,`user_id`,`organization_id`,`resource_type`,`action`,`build_reason`);--> statement-breakpoint
CREATE INDEX `audit_logs_request` ON `audit_logs` (`request_id`,`time`);