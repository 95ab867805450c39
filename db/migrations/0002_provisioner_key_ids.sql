ALTER TABLE `provisioner_keys` ADD `prefix` text DEFAULT '' NOT NULL;--> statement-breakpoint
-- Keys had the ten characters of their text as id: each gets a UUID, wherever its id stands, also those that are gone by now.
CREATE TABLE `new_key_ids` (`old` text PRIMARY KEY NOT NULL, `id` text NOT NULL);--> statement-breakpoint
INSERT INTO `new_key_ids` (`old`, `id`)
SELECT `old`, lower(
  hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' ||
  substr('89AB', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))
FROM (
  SELECT `id` AS `old` FROM `provisioner_keys`
  UNION SELECT `key_id` FROM `provisioner_daemons`
  UNION SELECT `resource_id` FROM `audit_logs` WHERE `resource_type` = 'provisioner_key'
) WHERE length(`old`) = 10;--> statement-breakpoint
UPDATE `provisioner_keys` SET `prefix` = `id`, `id` = (SELECT n.`id` FROM `new_key_ids` n WHERE n.`old` = `provisioner_keys`.`id`)
WHERE `id` IN (SELECT `old` FROM `new_key_ids`);--> statement-breakpoint
UPDATE `provisioner_daemons` SET `key_id` = (SELECT n.`id` FROM `new_key_ids` n WHERE n.`old` = `provisioner_daemons`.`key_id`)
WHERE `key_id` IN (SELECT `old` FROM `new_key_ids`);--> statement-breakpoint
UPDATE `audit_logs` SET `diff` = json_set(`diff`, '$.id.old', (SELECT n.`id` FROM `new_key_ids` n WHERE n.`old` = `audit_logs`.`resource_id`))
WHERE `resource_type` = 'provisioner_key' AND json_extract(`diff`, '$.id.old') = `resource_id`;--> statement-breakpoint
UPDATE `audit_logs` SET `diff` = json_set(`diff`, '$.id.new', (SELECT n.`id` FROM `new_key_ids` n WHERE n.`old` = `audit_logs`.`resource_id`))
WHERE `resource_type` = 'provisioner_key' AND json_extract(`diff`, '$.id.new') = `resource_id`;--> statement-breakpoint
UPDATE `audit_logs` SET `resource_id` = (SELECT n.`id` FROM `new_key_ids` n WHERE n.`old` = `audit_logs`.`resource_id`)
WHERE `resource_type` = 'provisioner_key' AND `resource_id` IN (SELECT `old` FROM `new_key_ids`);--> statement-breakpoint
DROP TABLE `new_key_ids`;--> statement-breakpoint
CREATE UNIQUE INDEX `provisioner_keys_prefix` ON `provisioner_keys` (`prefix`);
