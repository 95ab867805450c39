-- The schema of a database that the program 0.2.0 has made: `sqlite_schema`, and its rows of `migrations`.
CREATE TABLE migrations (version integer primary key, name text not null, applied_at integer not null)
--> statement-breakpoint
CREATE TABLE `agent_apps` (
	`id` text PRIMARY KEY NOT NULL,
	`agent_id` text NOT NULL,
	`slug` text NOT NULL,
	`display_name` text DEFAULT '' NOT NULL,
	`command` text DEFAULT '' NOT NULL,
	`url` text DEFAULT '' NOT NULL,
	`external` integer DEFAULT false NOT NULL,
	`subdomain` integer DEFAULT false NOT NULL,
	`hidden` integer DEFAULT false NOT NULL,
	`group` text DEFAULT '' NOT NULL,
	`icon` text DEFAULT '' NOT NULL,
	`tooltip` text DEFAULT '' NOT NULL,
	`open_in` text DEFAULT 'slim-window' NOT NULL,
	`sharing_level` text DEFAULT 'owner' NOT NULL,
	`health` text DEFAULT 'disabled' NOT NULL,
	`healthcheck_url` text DEFAULT '' NOT NULL,
	`healthcheck_interval` integer DEFAULT 0 NOT NULL,
	`healthcheck_threshold` integer DEFAULT 0 NOT NULL,
	`display_order` integer DEFAULT 0 NOT NULL
)
--> statement-breakpoint
CREATE TABLE `agent_log_sources` (
	`key` integer PRIMARY KEY NOT NULL,
	`agent_id` text NOT NULL,
	`id` text NOT NULL,
	`display_name` text NOT NULL,
	`icon` text NOT NULL,
	`created_at` integer NOT NULL,
	`last_batch` text
)
--> statement-breakpoint
CREATE TABLE `agent_logs` (
	`id` integer PRIMARY KEY NOT NULL,
	`agent` integer NOT NULL,
	`source` integer NOT NULL,
	`created_at` integer NOT NULL,
	`level` integer NOT NULL,
	`output` text NOT NULL
)
--> statement-breakpoint
CREATE TABLE `agent_metadata` (
	`agent_id` text NOT NULL,
	`key` text NOT NULL,
	`display_name` text NOT NULL,
	`script` text NOT NULL,
	`interval` integer NOT NULL,
	`timeout` integer NOT NULL,
	`display_order` integer DEFAULT 0 NOT NULL,
	`value` text DEFAULT '' NOT NULL,
	`error` text DEFAULT '' NOT NULL,
	`collected_at` integer,
	PRIMARY KEY(`agent_id`, `key`)
)
--> statement-breakpoint
CREATE TABLE `agent_script_timings` (
	`script_id` text NOT NULL,
	`agent_id` text NOT NULL,
	`started_at` integer NOT NULL,
	`ended_at` integer NOT NULL,
	`exit_code` integer NOT NULL,
	`stage` text NOT NULL,
	`status` text NOT NULL,
	PRIMARY KEY(`script_id`, `started_at`)
)
--> statement-breakpoint
CREATE TABLE `agent_scripts` (
	`id` text PRIMARY KEY NOT NULL,
	`agent_id` text NOT NULL,
	`log_source_id` text NOT NULL,
	`log_path` text DEFAULT '' NOT NULL,
	`display_name` text NOT NULL,
	`script` text NOT NULL,
	`cron` text DEFAULT '' NOT NULL,
	`run_on_start` integer DEFAULT false NOT NULL,
	`run_on_stop` integer DEFAULT false NOT NULL,
	`start_blocks_login` integer DEFAULT false NOT NULL,
	`timeout_seconds` integer DEFAULT 0 NOT NULL,
	`display_order` integer DEFAULT 0 NOT NULL,
	`status` text,
	`exit_code` integer
)
--> statement-breakpoint
CREATE TABLE `agent_stats` (
	`agent_id` text PRIMARY KEY NOT NULL,
	`collected_at` integer NOT NULL,
	`connection_count` integer NOT NULL,
	`connection_median_latency_ms` integer NOT NULL,
	`rx_bytes` integer NOT NULL,
	`tx_bytes` integer NOT NULL,
	`session_counts` text NOT NULL
)
--> statement-breakpoint
CREATE TABLE `agents` (
	`key` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`workspace_id` text NOT NULL,
	`build_id` text NOT NULL,
	`resource_id` text NOT NULL,
	`parent_id` text,
	`name` text NOT NULL,
	`token_hash` text,
	`instance_id` text DEFAULT '' NOT NULL,
	`api_key_scope` text DEFAULT 'all' NOT NULL,
	`architecture` text NOT NULL,
	`operating_system` text NOT NULL,
	`directory` text DEFAULT '' NOT NULL,
	`environment_variables` text DEFAULT '{}' NOT NULL,
	`display_apps` text DEFAULT '[]' NOT NULL,
	`connection_timeout_seconds` integer DEFAULT 120 NOT NULL,
	`troubleshooting_url` text DEFAULT '' NOT NULL,
	`motd_file` text DEFAULT '' NOT NULL,
	`display_order` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`version` text DEFAULT '' NOT NULL,
	`api_version` text DEFAULT '' NOT NULL,
	`expanded_directory` text DEFAULT '' NOT NULL,
	`subsystems` text DEFAULT '[]' NOT NULL,
	`lifecycle_state` text DEFAULT 'created' NOT NULL,
	`lifecycle_changed_at` integer,
	`started_at` integer,
	`ready_at` integer,
	`first_connected_at` integer,
	`last_connected_at` integer,
	`disconnected_at` integer,
	`logs_length` integer DEFAULT 0 NOT NULL,
	`logs_overflowed` integer DEFAULT false NOT NULL, `devcontainers` text DEFAULT '[]' NOT NULL,
	FOREIGN KEY (`workspace_id`) REFERENCES `workspaces`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `app_statuses` (
	`key` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`agent_id` text NOT NULL,
	`app_id` text NOT NULL,
	`workspace_id` text NOT NULL,
	`state` text NOT NULL,
	`message` text NOT NULL,
	`uri` text NOT NULL,
	`created_at` integer NOT NULL
, `icon` text DEFAULT '' NOT NULL, `needs_user_attention` integer DEFAULT false NOT NULL)
--> statement-breakpoint
CREATE TABLE `audit_logs` (
	`key` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`time` integer NOT NULL,
	`organization_id` text,
	`user_id` text,
	`ip` text,
	`user_agent` text NOT NULL,
	`action` text NOT NULL,
	`resource_type` text NOT NULL,
	`resource_id` text NOT NULL,
	`resource_target` text NOT NULL,
	`resource_icon` text DEFAULT '' NOT NULL,
	`workspace_id` text,
	`build_reason` text DEFAULT '' NOT NULL,
	`diff` text NOT NULL,
	`additional_fields` text NOT NULL,
	`status_code` integer NOT NULL,
	`request_id` text NOT NULL
)
--> statement-breakpoint
CREATE TABLE `chat_diffs` (
	`chat` integer PRIMARY KEY NOT NULL,
	`provider_id` text NOT NULL,
	`remote_origin` text NOT NULL,
	`branch` text NOT NULL,
	`pushed_at` integer NOT NULL,
	`pr_number` integer,
	`pr_state` text,
	`pr_draft` integer DEFAULT false NOT NULL,
	`pr_title` text DEFAULT '' NOT NULL,
	`url` text DEFAULT '' NOT NULL,
	`author_login` text DEFAULT '' NOT NULL,
	`author_avatar_url` text DEFAULT '' NOT NULL,
	`base_branch` text DEFAULT '' NOT NULL,
	`head_branch` text DEFAULT '' NOT NULL,
	`additions` integer DEFAULT 0 NOT NULL,
	`deletions` integer DEFAULT 0 NOT NULL,
	`changed_files` integer DEFAULT 0 NOT NULL,
	`commits` integer DEFAULT 0 NOT NULL,
	`reviewer_count` integer DEFAULT 0 NOT NULL,
	`approved` integer DEFAULT false NOT NULL,
	`changes_requested` integer DEFAULT false NOT NULL,
	`kept` text DEFAULT '{}' NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL,
	`refreshed_at` integer,
	`stale_at` integer NOT NULL,
	FOREIGN KEY (`chat`) REFERENCES `chats`(`key`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `chat_files` (
	`id` text PRIMARY KEY NOT NULL,
	`organization_id` text NOT NULL,
	`owner_id` text NOT NULL,
	`chat` integer,
	`hash` text NOT NULL,
	`name` text NOT NULL,
	`media_type` text NOT NULL,
	`size` integer NOT NULL,
	`created_at` integer NOT NULL,
	`linked_at` integer,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`owner_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`chat`) REFERENCES `chats`(`key`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `chat_run_steps` (
	`run` integer NOT NULL,
	`number` integer NOT NULL,
	`operation` text NOT NULL,
	`status` text NOT NULL,
	`request` text NOT NULL,
	`response` text,
	`usage` text,
	`error` text,
	`started_at` integer NOT NULL,
	`finished_at` integer NOT NULL,
	PRIMARY KEY(`run`, `number`),
	FOREIGN KEY (`run`) REFERENCES `chat_runs`(`key`) ON UPDATE no action ON DELETE cascade
)
--> statement-breakpoint
CREATE TABLE `chat_runs` (
	`key` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`chat` integer NOT NULL,
	`kind` text NOT NULL,
	`status` text NOT NULL,
	`provider` text NOT NULL,
	`model` text NOT NULL,
	`summary` text DEFAULT '' NOT NULL,
	`trigger_message_id` integer,
	`history_tip_message_id` integer,
	`started_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`finished_at` integer,
	FOREIGN KEY (`chat`) REFERENCES `chats`(`key`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `chat_shares` (
	`chat` integer NOT NULL,
	`subject` text NOT NULL,
	`kind` text NOT NULL,
	`role` text NOT NULL,
	PRIMARY KEY(`chat`, `subject`),
	FOREIGN KEY (`chat`) REFERENCES `chats`(`key`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `chat_requests` (
	`chat` integer NOT NULL,
	`key` text NOT NULL,
	`answer` text,
	`created_at` integer NOT NULL, `digest` text DEFAULT '' NOT NULL,
	PRIMARY KEY(`chat`, `key`),
	FOREIGN KEY (`chat`) REFERENCES `chats`(`key`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `chats` (
	`key` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`organization_id` text NOT NULL,
	`owner_id` text NOT NULL,
	`workspace_id` text,
	`parent_chat_id` text,
	`root_chat_id` text,
	`subagent_type` text,
	`last_model_config_id` text NOT NULL,
	`last_reasoning_effort` text DEFAULT '' NOT NULL,
	`title` text NOT NULL,
	`summary` text,
	`last_turn_summary` text DEFAULT '' NOT NULL,
	`client_type` text NOT NULL,
	`plan_mode` text,
	`labels` text DEFAULT '{}' NOT NULL,
	`mcp_server_ids` text DEFAULT '[]' NOT NULL,
	`dynamic_tools` text DEFAULT '[]' NOT NULL,
	`permissions` text,
	`pin_order` integer DEFAULT 0 NOT NULL,
	`read_cursor` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`status` text NOT NULL,
	`archived` integer DEFAULT false NOT NULL,
	`last_error` text,
	`retry_state` text,
	`requires_action_deadline` integer,
	`pending_calls` text DEFAULT '[]' NOT NULL,
	`snapshot_version` integer NOT NULL,
	`history_version` integer NOT NULL,
	`queue_version` integer DEFAULT 0 NOT NULL,
	`retry_version` integer DEFAULT 0 NOT NULL,
	`generation_attempt` integer DEFAULT 0 NOT NULL,
	`last_assistant_id` integer DEFAULT 0 NOT NULL, `replaced_model_config_id` text, `compaction` text,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`owner_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `messages` (
	`id` integer PRIMARY KEY NOT NULL,
	`chat` integer NOT NULL,
	`revision` integer NOT NULL,
	`deleted` integer DEFAULT false NOT NULL,
	`role` text NOT NULL,
	`visibility` text NOT NULL,
	`content` text NOT NULL,
	`created_by` text,
	`model_config_id` text,
	`usage` text,
	`replayed` integer,
	`created_at` integer NOT NULL, `custom_prompt` text,
	FOREIGN KEY (`chat`) REFERENCES `chats`(`key`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `queued_messages` (
	`id` integer PRIMARY KEY NOT NULL,
	`chat` integer NOT NULL,
	`position` integer NOT NULL,
	`content` text NOT NULL,
	`created_by` text NOT NULL,
	`model_config_id` text,
	`reasoning_effort` text DEFAULT '' NOT NULL,
	`created_at` integer NOT NULL, `custom_prompt` text,
	FOREIGN KEY (`chat`) REFERENCES `chats`(`key`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `chat_contexts` (
	`chat` integer PRIMARY KEY NOT NULL,
	`agent_id` text NOT NULL,
	`snapshot` text NOT NULL,
	`pinned_at` integer NOT NULL,
	`dirty_since` integer,
	FOREIGN KEY (`chat`) REFERENCES `chats`(`key`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`snapshot`) REFERENCES `context_snapshots`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `context_snapshots` (
	`id` text PRIMARY KEY NOT NULL,
	`hash` text NOT NULL,
	`resources` text NOT NULL,
	`error` text NOT NULL
)
--> statement-breakpoint
CREATE TABLE `user_skills` (
	`id` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`name` text NOT NULL,
	`description` text NOT NULL,
	`content` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `workspace_contexts` (
	`workspace_id` text PRIMARY KEY NOT NULL,
	`agent_id` text NOT NULL,
	`version` integer NOT NULL,
	`snapshot` text NOT NULL,
	`updated_at` integer NOT NULL,
	FOREIGN KEY (`workspace_id`) REFERENCES `workspaces`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`snapshot`) REFERENCES `context_snapshots`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `epoch` (
	`id` integer PRIMARY KEY NOT NULL,
	`value` integer NOT NULL
)
--> statement-breakpoint
CREATE TABLE `sequences` (
	`name` text PRIMARY KEY NOT NULL,
	`next` integer NOT NULL
)
--> statement-breakpoint
CREATE TABLE `settings` (
	`key` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL
)
--> statement-breakpoint
CREATE TABLE `timers` (
	`id` text PRIMARY KEY NOT NULL,
	`actor` text NOT NULL,
	`actor_id` text NOT NULL,
	`name` text NOT NULL,
	`due` integer NOT NULL
)
--> statement-breakpoint
CREATE TABLE `external_auth_links` (
	`user_id` text NOT NULL,
	`provider_id` text NOT NULL,
	`sealed_tokens` text NOT NULL,
	`expires_at` integer,
	`has_refresh_token` integer NOT NULL,
	`failure` text DEFAULT '' NOT NULL,
	`version` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	PRIMARY KEY(`user_id`, `provider_id`),
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `git_ssh_keys` (
	`user_id` text PRIMARY KEY NOT NULL,
	`public_key` text NOT NULL,
	`sealed_private_key` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `job_logs` (
	`id` integer PRIMARY KEY NOT NULL,
	`job` integer NOT NULL,
	`created_at` integer NOT NULL,
	`source` integer NOT NULL,
	`level` integer NOT NULL,
	`stage` text NOT NULL,
	`output` text NOT NULL
)
--> statement-breakpoint
CREATE TABLE `jobs` (
	`key` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`organization_id` text NOT NULL,
	`initiator_id` text NOT NULL,
	`type` text NOT NULL,
	`provisioner` text NOT NULL,
	`file_id` text NOT NULL,
	`input` text NOT NULL,
	`tags` text DEFAULT '{}' NOT NULL,
	`worker_id` text,
	`worker_name` text DEFAULT '' NOT NULL,
	`error` text DEFAULT '' NOT NULL,
	`error_code` text DEFAULT '' NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`started_at` integer,
	`canceled_at` integer,
	`completed_at` integer,
	`attempts` integer DEFAULT 0 NOT NULL,
	`logs_length` integer DEFAULT 0 NOT NULL,
	`logs_overflowed` integer DEFAULT false NOT NULL,
	`timings` text DEFAULT '[]' NOT NULL
)
--> statement-breakpoint
CREATE TABLE `mcp_servers` (
	`id` text PRIMARY KEY NOT NULL,
	`organization_id` text NOT NULL,
	`slug` text NOT NULL,
	`display_name` text NOT NULL,
	`description` text NOT NULL,
	`icon` text NOT NULL,
	`url` text NOT NULL,
	`transport` text NOT NULL,
	`auth_type` text NOT NULL,
	`api_key_header` text NOT NULL,
	`oauth2` text,
	`sealed_secrets` text NOT NULL,
	`tool_allow_list` text NOT NULL,
	`tool_deny_list` text NOT NULL,
	`availability` text NOT NULL,
	`enabled` integer NOT NULL,
	`model_intent` integer NOT NULL,
	`allow_in_plan_mode` integer NOT NULL,
	`version` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `model_configs` (
	`id` text PRIMARY KEY NOT NULL,
	`provider_id` text NOT NULL,
	`model` text NOT NULL,
	`display_name` text NOT NULL,
	`enabled` integer NOT NULL,
	`is_default` integer NOT NULL,
	`context_limit` integer NOT NULL,
	`compression_threshold` integer,
	`model_config` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`deleted` integer DEFAULT false NOT NULL,
	FOREIGN KEY (`provider_id`) REFERENCES `model_providers`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `model_providers` (
	`id` text PRIMARY KEY NOT NULL,
	`provider` text NOT NULL,
	`display_name` text NOT NULL,
	`base_url` text NOT NULL,
	`sealed_api_key` text NOT NULL,
	`enabled` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`deleted` integer DEFAULT false NOT NULL
)
--> statement-breakpoint
CREATE TABLE `port_shares` (
	`workspace_id` text NOT NULL,
	`agent_name` text NOT NULL,
	`port` integer NOT NULL,
	`protocol` text NOT NULL,
	`share_level` text NOT NULL,
	PRIMARY KEY(`workspace_id`, `agent_name`, `port`),
	FOREIGN KEY (`workspace_id`) REFERENCES `workspaces`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `provisioner_daemons` (
	`id` text PRIMARY KEY NOT NULL,
	`organization_id` text NOT NULL,
	`key_id` text NOT NULL,
	`name` text NOT NULL,
	`version` text NOT NULL,
	`provisioners` text NOT NULL,
	`tags` text NOT NULL,
	`slots` integer NOT NULL,
	`created_at` integer NOT NULL,
	`last_seen_at` integer NOT NULL,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `provisioner_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`organization_id` text NOT NULL,
	`name` text NOT NULL,
	`secret_hash` text NOT NULL,
	`tags` text DEFAULT '{}' NOT NULL,
	`created_by` text NOT NULL,
	`created_at` integer NOT NULL, `prefix` text DEFAULT '' NOT NULL,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `files` (
	`id` text PRIMARY KEY NOT NULL,
	`hash` text NOT NULL,
	`created_by` text NOT NULL,
	`mimetype` text NOT NULL,
	`size` integer NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`created_by`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `template_versions` (
	`id` text PRIMARY KEY NOT NULL,
	`template_id` text,
	`organization_id` text NOT NULL,
	`name` text NOT NULL,
	`message` text DEFAULT '' NOT NULL,
	`readme` text DEFAULT '' NOT NULL,
	`job_id` text NOT NULL,
	`file_id` text NOT NULL,
	`created_by` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`archived` integer DEFAULT false NOT NULL,
	`manifest` text,
	`variable_values` text DEFAULT '{}' NOT NULL, `sealed_variable_values` text DEFAULT '' NOT NULL, `has_ai_task` integer DEFAULT false NOT NULL, `has_external_agent` integer DEFAULT false NOT NULL,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`created_by`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `templates` (
	`id` text PRIMARY KEY NOT NULL,
	`organization_id` text NOT NULL,
	`name` text NOT NULL,
	`display_name` text DEFAULT '' NOT NULL,
	`description` text DEFAULT '' NOT NULL,
	`icon` text DEFAULT '' NOT NULL,
	`provisioner` text NOT NULL,
	`active_version_id` text NOT NULL,
	`created_by` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`deleted` integer DEFAULT false NOT NULL,
	`deprecation_message` text DEFAULT '' NOT NULL,
	`default_ttl_ms` integer DEFAULT 0 NOT NULL,
	`activity_bump_ms` integer DEFAULT 3600000 NOT NULL,
	`autostop_requirement_days` text DEFAULT '[]' NOT NULL,
	`autostop_requirement_weeks` integer DEFAULT 1 NOT NULL,
	`autostart_requirement_days` text DEFAULT '["monday","tuesday","wednesday","thursday","friday","saturday","sunday"]' NOT NULL,
	`allow_user_cancel_workspace_jobs` integer DEFAULT true NOT NULL,
	`allow_user_autostart` integer DEFAULT true NOT NULL,
	`allow_user_autostop` integer DEFAULT true NOT NULL,
	`failure_ttl_ms` integer DEFAULT 0 NOT NULL,
	`time_til_dormant_ms` integer DEFAULT 0 NOT NULL,
	`time_til_dormant_autodelete_ms` integer DEFAULT 0 NOT NULL,
	`require_active_version` integer DEFAULT false NOT NULL,
	`max_port_share_level` text DEFAULT 'public' NOT NULL,
	`use_classic_parameter_flow` integer DEFAULT true NOT NULL,
	`cors_behavior` text DEFAULT 'simple' NOT NULL,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`created_by`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `usage_details` (
	`id` integer PRIMARY KEY NOT NULL,
	`detail` blob NOT NULL
)
--> statement-breakpoint
CREATE TABLE `usage_digests` (
	`id` integer PRIMARY KEY NOT NULL,
	`digest` blob NOT NULL
)
--> statement-breakpoint
CREATE TABLE `usage_keys` (
	`key` integer PRIMARY KEY NOT NULL,
	`kind` integer NOT NULL,
	`name` text NOT NULL
)
--> statement-breakpoint
CREATE TABLE `usage_latencies` (
	`bucket` integer NOT NULL,
	`user` integer NOT NULL,
	`template` integer NOT NULL,
	`ms` integer NOT NULL,
	`count` integer NOT NULL,
	PRIMARY KEY(`bucket`, `user`, `template`, `ms`)
)
--> statement-breakpoint
CREATE TABLE `usage_minutes` (
	`bucket` integer NOT NULL,
	`user` integer NOT NULL,
	`template` integer NOT NULL,
	`app` integer NOT NULL,
	`mask` integer NOT NULL,
	PRIMARY KEY(`bucket`, `user`, `template`, `app`)
)
--> statement-breakpoint
CREATE TABLE `user_status_changes` (
	`id` integer PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`status` text NOT NULL,
	`at` integer NOT NULL
)
--> statement-breakpoint
CREATE TABLE `api_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`secret_hash` text NOT NULL,
	`token_name` text DEFAULT '' NOT NULL,
	`login_type` text NOT NULL,
	`scope` text NOT NULL,
	`lifetime_seconds` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`last_used` integer NOT NULL,
	`expires_at` integer NOT NULL, `scopes` text DEFAULT '[]' NOT NULL, `allowed_addresses` text DEFAULT '[]' NOT NULL, `ip_address` text DEFAULT '' NOT NULL, `user_agent` text DEFAULT '' NOT NULL, `password_proved_at` integer, `factor_proved_at` integer,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `organization_members` (
	`organization_id` text NOT NULL,
	`user_id` text NOT NULL,
	`roles` text DEFAULT '[]' NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	PRIMARY KEY(`organization_id`, `user_id`),
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `organizations` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`display_name` text NOT NULL,
	`description` text DEFAULT '' NOT NULL,
	`icon` text DEFAULT '' NOT NULL,
	`is_default` integer DEFAULT false NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`deleted` integer DEFAULT false NOT NULL
)
--> statement-breakpoint
CREATE TABLE `users` (
	`id` text PRIMARY KEY NOT NULL,
	`email` text NOT NULL,
	`username` text NOT NULL,
	`name` text DEFAULT '' NOT NULL,
	`avatar_url` text DEFAULT '' NOT NULL,
	`status` text NOT NULL,
	`login_type` text NOT NULL,
	`password_hash` text DEFAULT '' NOT NULL,
	`roles` text DEFAULT '[]' NOT NULL,
	`theme_preference` text DEFAULT '' NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`last_seen_at` integer,
	`deleted` integer DEFAULT false NOT NULL
, `github_com_user_id` integer, `second_factor_required` integer DEFAULT false NOT NULL, `has_ai_seat` integer DEFAULT false NOT NULL, `terminal_font` text DEFAULT '' NOT NULL)
--> statement-breakpoint
CREATE TABLE `workspace_activity` (
	`id` integer PRIMARY KEY NOT NULL,
	`workspace_id` text NOT NULL,
	`at` integer NOT NULL,
	`reason` text NOT NULL,
	`detail` text DEFAULT '' NOT NULL,
	`actor_kind` text NOT NULL,
	`actor_id` text,
	`actor_name` text NOT NULL,
	`old_deadline` integer,
	`new_deadline` integer,
	FOREIGN KEY (`workspace_id`) REFERENCES `workspaces`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `workspace_build_parameters` (
	`build_id` text NOT NULL,
	`name` text NOT NULL,
	`value` text NOT NULL,
	PRIMARY KEY(`build_id`, `name`),
	FOREIGN KEY (`build_id`) REFERENCES `workspace_builds`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `workspace_builds` (
	`id` text PRIMARY KEY NOT NULL,
	`workspace_id` text NOT NULL,
	`build_number` integer NOT NULL,
	`job_id` text NOT NULL,
	`template_version_id` text NOT NULL,
	`template_version_preset_id` text,
	`initiator_id` text NOT NULL,
	`transition` text NOT NULL,
	`reason` text NOT NULL,
	`orphan` integer DEFAULT false NOT NULL,
	`log_level` text DEFAULT '' NOT NULL,
	`daily_cost` integer DEFAULT 0 NOT NULL,
	`deadline` integer,
	`max_deadline` integer,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`state` text, `followed_by` text,
	FOREIGN KEY (`workspace_id`) REFERENCES `workspaces`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `workspace_resources` (
	`id` text PRIMARY KEY NOT NULL,
	`job_id` text NOT NULL,
	`transition` text NOT NULL,
	`type` text NOT NULL,
	`name` text NOT NULL,
	`icon` text DEFAULT '' NOT NULL,
	`hide` integer DEFAULT false NOT NULL,
	`daily_cost` integer DEFAULT 0 NOT NULL,
	`metadata` text DEFAULT '[]' NOT NULL,
	`created_at` integer NOT NULL
)
--> statement-breakpoint
CREATE TABLE `workspaces` (
	`id` text PRIMARY KEY NOT NULL,
	`owner_id` text NOT NULL,
	`organization_id` text NOT NULL,
	`template_id` text NOT NULL,
	`name` text NOT NULL,
	`automatic_updates` text DEFAULT 'never' NOT NULL,
	`autostart_schedule` text,
	`ttl_ms` integer,
	`favorite` integer DEFAULT false NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`last_used_at` integer NOT NULL,
	`dormant_at` integer,
	`deleting_at` integer,
	`next_start_at` integer,
	`deleted` integer DEFAULT false NOT NULL,
	`user_acl` text DEFAULT '{}' NOT NULL,
	`group_acl` text DEFAULT '{}' NOT NULL,
	`latest_build_id` text NOT NULL,
	`status` text DEFAULT 'pending' NOT NULL,
	`version` integer DEFAULT 0 NOT NULL,
	FOREIGN KEY (`owner_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`template_id`) REFERENCES `templates`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE VIRTUAL TABLE message_search using fts5(words, content = '', contentless_delete = 1, tokenize = 'ascii')
--> statement-breakpoint
CREATE VIRTUAL TABLE title_search using fts5(words, content = '', contentless_delete = 1, tokenize = 'ascii')
--> statement-breakpoint
CREATE TABLE `usage_blocks` (
	`block` integer PRIMARY KEY NOT NULL,
	`version` integer NOT NULL
)
--> statement-breakpoint
CREATE TABLE `known_addresses` (
	`user_id` text NOT NULL,
	`network` text NOT NULL,
	`last_used` integer NOT NULL,
	PRIMARY KEY(`user_id`, `network`),
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `recovery_codes` (
	`user_id` text NOT NULL,
	`code_hash` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`user_id`, `code_hash`),
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `totp_factors` (
	`user_id` text PRIMARY KEY NOT NULL,
	`sealed_secret` text NOT NULL,
	`last_step` integer NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `hook_dispatches` (
	`key` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`event` text NOT NULL,
	`chat_id` text NOT NULL,
	`owner_id` text NOT NULL,
	`tool_name` text,
	`mode` text NOT NULL,
	`source` text NOT NULL,
	`result` text NOT NULL,
	`created_at` integer NOT NULL,
	`duration_ms` integer NOT NULL,
	`request` text,
	`response` text
)
--> statement-breakpoint
CREATE TABLE `oidc_links` (
	`issuer` text NOT NULL,
	`subject` text NOT NULL,
	`user_id` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`issuer`, `subject`),
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `passkeys` (
	`id` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`name` text NOT NULL,
	`credential_id` text NOT NULL,
	`public_key` text NOT NULL,
	`counter` integer NOT NULL,
	`transports` text NOT NULL,
	`backed_up` integer NOT NULL,
	`created_at` integer NOT NULL,
	`last_used_at` integer,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE TABLE `model_spend` (
	`key` integer PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`chat_id` text NOT NULL,
	`root_chat_id` text NOT NULL,
	`kind` text NOT NULL,
	`model_config_id` text NOT NULL,
	`input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	`cache_read_tokens` integer NOT NULL,
	`cache_creation_tokens` integer NOT NULL,
	`cost_micros` integer,
	`created_at` integer NOT NULL
)
--> statement-breakpoint
CREATE TABLE `notification_deliveries` (
	`key` integer PRIMARY KEY NOT NULL,
	`notification_id` text NOT NULL,
	`user_id` text NOT NULL,
	`method` text NOT NULL,
	`subscription_id` text,
	`attempts` integer DEFAULT 0 NOT NULL,
	`due` integer NOT NULL
)
--> statement-breakpoint
CREATE TABLE `notification_preferences` (
	`user_id` text NOT NULL,
	`template_id` text NOT NULL,
	`disabled` integer NOT NULL,
	`updated_at` integer NOT NULL,
	PRIMARY KEY(`user_id`, `template_id`),
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
)
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
)
--> statement-breakpoint
CREATE TABLE `webpush_subscriptions` (
	`id` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`endpoint_hash` text NOT NULL,
	`sealed` text NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
)
--> statement-breakpoint
CREATE UNIQUE INDEX `agent_apps_slug` ON `agent_apps` (`agent_id`,`slug`)
--> statement-breakpoint
CREATE UNIQUE INDEX `agent_log_sources_id` ON `agent_log_sources` (`agent_id`,`id`)
--> statement-breakpoint
CREATE INDEX `agent_logs_agent` ON `agent_logs` (`agent`,`id`)
--> statement-breakpoint
CREATE INDEX `agent_script_timings_agent` ON `agent_script_timings` (`agent_id`)
--> statement-breakpoint
CREATE INDEX `agent_scripts_agent` ON `agent_scripts` (`agent_id`)
--> statement-breakpoint
CREATE UNIQUE INDEX `agents_id_unique` ON `agents` (`id`)
--> statement-breakpoint
CREATE UNIQUE INDEX `agents_token_hash_unique` ON `agents` (`token_hash`)
--> statement-breakpoint
CREATE INDEX `agents_resource` ON `agents` (`resource_id`)
--> statement-breakpoint
CREATE INDEX `agents_build` ON `agents` (`build_id`)
--> statement-breakpoint
CREATE INDEX `agents_instance` ON `agents` (`instance_id`) WHERE "agents"."instance_id" <> ''
--> statement-breakpoint
CREATE UNIQUE INDEX `app_statuses_id_unique` ON `app_statuses` (`id`)
--> statement-breakpoint
CREATE INDEX `app_statuses_app` ON `app_statuses` (`app_id`,`key`)
--> statement-breakpoint
CREATE INDEX `app_statuses_agent` ON `app_statuses` (`agent_id`,`key`)
--> statement-breakpoint
CREATE UNIQUE INDEX `audit_logs_id_unique` ON `audit_logs` (`id`)
--> statement-breakpoint
CREATE INDEX `audit_logs_time` ON `audit_logs` (`time`)
--> statement-breakpoint
CREATE INDEX `audit_logs_resource` ON `audit_logs` (`resource_id`,`time`)
--> statement-breakpoint
CREATE INDEX `chat_files_chat` ON `chat_files` (`chat`,`linked_at`) WHERE "chat_files"."chat" is not null
--> statement-breakpoint
CREATE INDEX `chat_files_orphans` ON `chat_files` (`created_at`) WHERE "chat_files"."chat" is null
--> statement-breakpoint
CREATE UNIQUE INDEX `chat_runs_id_unique` ON `chat_runs` (`id`)
--> statement-breakpoint
CREATE INDEX `chat_runs_chat` ON `chat_runs` (`chat`,`key`)
--> statement-breakpoint
CREATE INDEX `chat_runs_started` ON `chat_runs` (`started_at`)
--> statement-breakpoint
CREATE INDEX `chat_runs_open` ON `chat_runs` (`key`) WHERE "chat_runs"."status" = 'in_progress'
--> statement-breakpoint
CREATE INDEX `chat_shares_subject` ON `chat_shares` (`subject`,`chat`)
--> statement-breakpoint
CREATE UNIQUE INDEX `chats_id_unique` ON `chats` (`id`)
--> statement-breakpoint
CREATE INDEX `chats_owner` ON `chats` (`owner_id`,`archived`,`updated_at`,`id`) WHERE "chats"."parent_chat_id" is null
--> statement-breakpoint
CREATE INDEX `chats_pinned` ON `chats` (`owner_id`,`pin_order`) WHERE "chats"."pin_order" > 0
--> statement-breakpoint
CREATE INDEX `chats_children` ON `chats` (`owner_id`,`parent_chat_id`) WHERE "chats"."parent_chat_id" is not null
--> statement-breakpoint
CREATE INDEX `chats_parent` ON `chats` (`parent_chat_id`) WHERE "chats"."parent_chat_id" is not null
--> statement-breakpoint
CREATE INDEX `chats_workspace` ON `chats` (`workspace_id`) WHERE "chats"."workspace_id" is not null
--> statement-breakpoint
CREATE INDEX `chats_archived` ON `chats` (`updated_at`) WHERE "chats"."archived" = 1 and "chats"."parent_chat_id" is null
--> statement-breakpoint
CREATE INDEX `chats_busy` ON `chats` (`status`) WHERE "chats"."status" in ('running', 'interrupting')
--> statement-breakpoint
CREATE INDEX `messages_chat` ON `messages` (`chat`,`id`)
--> statement-breakpoint
CREATE INDEX `messages_marker` ON `messages` (`chat`,`id`) WHERE "messages"."replayed" is not null
--> statement-breakpoint
CREATE INDEX `queued_messages_chat` ON `queued_messages` (`chat`,`position`)
--> statement-breakpoint
CREATE INDEX `chat_contexts_snapshot` ON `chat_contexts` (`snapshot`)
--> statement-breakpoint
CREATE UNIQUE INDEX `user_skills_name` ON `user_skills` (`user_id`,`name`)
--> statement-breakpoint
CREATE INDEX `workspace_contexts_snapshot` ON `workspace_contexts` (`snapshot`)
--> statement-breakpoint
CREATE INDEX `timers_due` ON `timers` (`due`)
--> statement-breakpoint
CREATE INDEX `job_logs_job` ON `job_logs` (`job`,`id`)
--> statement-breakpoint
CREATE UNIQUE INDEX `jobs_id_unique` ON `jobs` (`id`)
--> statement-breakpoint
CREATE INDEX `jobs_open` ON `jobs` (`created_at`) WHERE "jobs"."completed_at" is null
--> statement-breakpoint
CREATE UNIQUE INDEX `mcp_servers_slug` ON `mcp_servers` (`organization_id`,`slug`)
--> statement-breakpoint
CREATE UNIQUE INDEX `model_configs_model` ON `model_configs` (`provider_id`,`model`) WHERE "model_configs"."deleted" = 0
--> statement-breakpoint
CREATE UNIQUE INDEX `model_configs_default` ON `model_configs` (`is_default`) WHERE "model_configs"."is_default" = 1 and "model_configs"."deleted" = 0
--> statement-breakpoint
CREATE UNIQUE INDEX `model_providers_name` ON `model_providers` (`provider`,lower("display_name")) WHERE "model_providers"."deleted" = 0
--> statement-breakpoint
CREATE UNIQUE INDEX `provisioner_daemons_name` ON `provisioner_daemons` (`organization_id`,lower("name"))
--> statement-breakpoint
CREATE INDEX `provisioner_daemons_seen` ON `provisioner_daemons` (`organization_id`,`last_seen_at`)
--> statement-breakpoint
CREATE UNIQUE INDEX `provisioner_keys_name` ON `provisioner_keys` (`organization_id`,lower("name"))
--> statement-breakpoint
CREATE UNIQUE INDEX `files_hash` ON `files` (`created_by`,`hash`,`mimetype`)
--> statement-breakpoint
CREATE INDEX `template_versions_template` ON `template_versions` (`template_id`,`created_at`)
--> statement-breakpoint
CREATE INDEX `template_versions_job` ON `template_versions` (`job_id`)
--> statement-breakpoint
CREATE UNIQUE INDEX `template_versions_name` ON `template_versions` (`template_id`,`name`) WHERE "template_versions"."template_id" is not null
--> statement-breakpoint
CREATE UNIQUE INDEX `templates_name` ON `templates` (`organization_id`,lower("name")) WHERE "templates"."deleted" = 0
--> statement-breakpoint
CREATE UNIQUE INDEX `usage_keys_name` ON `usage_keys` (`kind`,`name`)
--> statement-breakpoint
CREATE INDEX `user_status_changes_user` ON `user_status_changes` (`user_id`,`id`)
--> statement-breakpoint
CREATE INDEX `api_keys_user` ON `api_keys` (`user_id`)
--> statement-breakpoint
CREATE UNIQUE INDEX `api_keys_name` ON `api_keys` (`user_id`,`token_name`) WHERE "api_keys"."token_name" <> ''
--> statement-breakpoint
CREATE INDEX `organization_members_user` ON `organization_members` (`user_id`)
--> statement-breakpoint
CREATE UNIQUE INDEX `organizations_name` ON `organizations` (lower("name")) WHERE "organizations"."deleted" = 0
--> statement-breakpoint
CREATE UNIQUE INDEX `users_username` ON `users` (lower("username")) WHERE "users"."deleted" = 0
--> statement-breakpoint
CREATE INDEX `users_by_name` ON `users` (lower("username"),`id`)
--> statement-breakpoint
CREATE UNIQUE INDEX `users_email` ON `users` (lower("email")) WHERE "users"."deleted" = 0 and "users"."email" <> ''
--> statement-breakpoint
CREATE INDEX `workspace_activity_workspace` ON `workspace_activity` (`workspace_id`,`id`)
--> statement-breakpoint
CREATE UNIQUE INDEX `workspace_builds_job_id_unique` ON `workspace_builds` (`job_id`)
--> statement-breakpoint
CREATE UNIQUE INDEX `workspace_builds_number` ON `workspace_builds` (`workspace_id`,`build_number`)
--> statement-breakpoint
CREATE INDEX `workspace_resources_job` ON `workspace_resources` (`job_id`)
--> statement-breakpoint
CREATE UNIQUE INDEX `workspaces_name` ON `workspaces` (`owner_id`,lower("name")) WHERE "workspaces"."deleted" = 0
--> statement-breakpoint
CREATE INDEX `workspaces_template` ON `workspaces` (`template_id`)
--> statement-breakpoint
CREATE INDEX `workspaces_list` ON `workspaces` (`owner_id`,`status`,lower("name"))
--> statement-breakpoint
CREATE INDEX `workspaces_status` ON `workspaces` (`status`,`deleted`,`dormant_at`,`organization_id`)
--> statement-breakpoint
CREATE INDEX `workspaces_alive` ON `workspaces` (`organization_id`,`dormant_at`,lower("name")) WHERE "workspaces"."deleted" = 0
--> statement-breakpoint
CREATE INDEX `workspaces_used` ON `workspaces` (`last_used_at`) WHERE "workspaces"."deleted" = 0
--> statement-breakpoint
CREATE INDEX `workspaces_dormant` ON `workspaces` (`dormant_at`) WHERE "workspaces"."dormant_at" is not null
--> statement-breakpoint
CREATE INDEX `workspaces_shared` ON `workspaces` (`organization_id`) WHERE ("workspaces"."user_acl" <> '{}' or "workspaces"."group_acl" <> '{}')
--> statement-breakpoint
CREATE INDEX `audit_logs_kind` ON `audit_logs` (`resource_type`,`action`,`build_reason`,`time`)
--> statement-breakpoint
CREATE INDEX `audit_logs_organization` ON `audit_logs` (`organization_id`,`resource_type`,`action`,`build_reason`,`time`)
--> statement-breakpoint
CREATE INDEX `audit_logs_user` ON `audit_logs` (`user_id`,`organization_id`,`resource_type`,`action`,`build_reason`,`time`)
--> statement-breakpoint
CREATE INDEX `audit_logs_target` ON `audit_logs` (lower("resource_target"),`time`,`user_id`,`organization_id`,`resource_type`,`action`,`build_reason`)
--> statement-breakpoint
CREATE INDEX `audit_logs_request` ON `audit_logs` (`request_id`,`time`)
--> statement-breakpoint
CREATE UNIQUE INDEX `provisioner_keys_prefix` ON `provisioner_keys` (`prefix`)
--> statement-breakpoint
CREATE UNIQUE INDEX `hook_dispatches_id_unique` ON `hook_dispatches` (`id`)
--> statement-breakpoint
CREATE INDEX `hook_dispatches_chat` ON `hook_dispatches` (`chat_id`,`key`)
--> statement-breakpoint
CREATE INDEX `hook_dispatches_created` ON `hook_dispatches` (`created_at`)
--> statement-breakpoint
CREATE INDEX `oidc_links_user` ON `oidc_links` (`user_id`)
--> statement-breakpoint
CREATE INDEX `passkeys_user` ON `passkeys` (`user_id`)
--> statement-breakpoint
CREATE UNIQUE INDEX `passkeys_credential` ON `passkeys` (`credential_id`)
--> statement-breakpoint
CREATE INDEX `model_spend_user` ON `model_spend` (`user_id`,`created_at`,`cost_micros`)
--> statement-breakpoint
CREATE INDEX `model_spend_root` ON `model_spend` (`root_chat_id`)
--> statement-breakpoint
CREATE INDEX `model_spend_created` ON `model_spend` (`created_at`)
--> statement-breakpoint
CREATE INDEX `notification_deliveries_due` ON `notification_deliveries` (`due`)
--> statement-breakpoint
CREATE UNIQUE INDEX `notifications_id_unique` ON `notifications` (`id`)
--> statement-breakpoint
CREATE UNIQUE INDEX `notifications_dedupe` ON `notifications` (`user_id`,`dedupe`)
--> statement-breakpoint
CREATE INDEX `notifications_inbox` ON `notifications` (`user_id`,`key`)
--> statement-breakpoint
CREATE INDEX `notifications_undispatched` ON `notifications` (`key`) WHERE "notifications"."dispatched_at" is null
--> statement-breakpoint
CREATE INDEX `notifications_created` ON `notifications` (`created_at`)
--> statement-breakpoint
CREATE UNIQUE INDEX `webpush_subscriptions_endpoint` ON `webpush_subscriptions` (`user_id`,`endpoint_hash`)
--> statement-breakpoint
CREATE TRIGGER user_status_inserted after insert on users begin
  insert into user_status_changes (user_id, status, at) values (new.id, new.status, new.created_at);
end
--> statement-breakpoint
CREATE TRIGGER user_status_changed after update of status on users when old.status <> new.status begin
  insert into user_status_changes (user_id, status, at)
  values (new.id, new.status, max(new.updated_at, coalesce(new.last_seen_at, 0)));
end
--> statement-breakpoint
CREATE TRIGGER user_deleted after update of deleted on users when old.deleted = 0 and new.deleted = 1 begin
  insert into user_status_changes (user_id, status, at) values (new.id, 'deleted', new.updated_at);
end
--> statement-breakpoint
insert into migrations values (1, '0000_init', 1795369215000)
--> statement-breakpoint
insert into migrations values (2, '0000_search', 1795369215000)
--> statement-breakpoint
insert into migrations values (3, '0000_user_status', 1795369215000)
--> statement-breakpoint
insert into migrations values (4, '0001_reports', 1795369215000)
--> statement-breakpoint
insert into migrations values (5, '0002_provisioner_key_ids', 1795369215000)
--> statement-breakpoint
insert into migrations values (6, '0003_sign_in', 1795369215000)
--> statement-breakpoint
insert into migrations values (7, '0004_second_factors', 1795369215000)
--> statement-breakpoint
insert into migrations values (8, '0005_hooks', 1795369215000)
--> statement-breakpoint
insert into migrations values (9, '0006_oidc_links', 1795369215000)
--> statement-breakpoint
insert into migrations values (10, '0007_passkeys', 1795369215000)
--> statement-breakpoint
insert into migrations values (11, '0008_request_digests', 1795369215000)
--> statement-breakpoint
insert into migrations values (12, '0009_app_status_attention', 1795369215000)
--> statement-breakpoint
insert into migrations values (13, '0010_template_variables', 1795369215000)
--> statement-breakpoint
insert into migrations values (14, '0011_replaced_chat_model', 1795369215000)
--> statement-breakpoint
insert into migrations values (15, '0012_declared_devcontainers', 1795369215000)
--> statement-breakpoint
insert into migrations values (16, '0013_model_spend', 1795369215000)
--> statement-breakpoint
insert into migrations values (17, '0014_ai_columns', 1795369215000)
--> statement-breakpoint
insert into migrations values (18, '0015_chat_compaction', 1795369215000)
--> statement-breakpoint
insert into migrations values (19, '0016_notifications', 1795369215000)
--> statement-breakpoint
insert into migrations values (20, '0017_followed_builds', 1795369215000)
--> statement-breakpoint
insert into migrations values (21, '0018_terminal_font', 1795369215000)
