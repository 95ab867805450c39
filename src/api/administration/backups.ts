// Routes that list, create and verify backups of the server's data directory, and report their progress.
import { t } from "elysia";
import { checkServerAdmin } from "#domain/access.ts";
import { checkBackup, makeBackupNow } from "#domain/administration/backups.ts";
import { reportHomeBackups } from "#domain/workspaces/home-backups.ts";
import { Backups } from "#schema/administration/backup.ts";
import { HomeBackupReport } from "#schema/workspaces/home-backup.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, Upgraded } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { openOwnersFeed } from "./feed.ts";

const tags = ["Administration"];

export const backups = (ctx: ApiContext) =>
  routes({ prefix: "/deployment/backups" })
    .use(callers)
    .get(
      "",
      ({ caller }) => {
        checkServerAdmin(caller);
        return ctx.backupsByHand.list();
      },
      {
        user: true,
        response: { 200: Backups, ...fails(401, 403) },
        detail: operation({
          tags,
          operationId: "listBackups",
          summary: "List backups",
          description: "Returns the backups in the folder of the setting `backup_dir`.",
          access: "admins",
          scope: "all",
        }),
      },
    )
    .post(
      "",
      async ({ caller, status }) => {
        checkServerAdmin(caller);
        return status(202, await makeBackupNow(ctx));
      },
      {
        user: true,
        response: { 202: Backups, ...fails(400, 401, 403, 409) },
        detail: operation({
          tags,
          operationId: "createBackup",
          summary: "Create a backup",
          description:
            "Starts creating a backup. `work` and the stream report its progress. Only one backup can be created or verified at a time.",
          access: "admins",
          scope: "all",
        }),
      },
    )
    .post(
      "/:backup/check",
      async ({ caller, params, status }) => {
        checkServerAdmin(caller);
        return status(202, await checkBackup(ctx, params.backup));
      },
      {
        user: true,
        params: t.Object({ backup: t.String({ maxLength: 64, description: "The name of the backup." }) }),
        response: { 202: Backups, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "checkBackup",
          summary: "Verify a backup",
          description:
            "Starts verifying a backup by reading all of it, as a restore does. Needs as much free disk space as the size of the backup.",
          access: "admins",
          scope: "all",
        }),
      },
    )
    .get(
      "/homes",
      ({ caller }) => {
        checkServerAdmin(caller);
        return reportHomeBackups(ctx);
      },
      {
        user: true,
        response: { 200: HomeBackupReport, ...fails(401, 403, 503) },
        detail: operation({
          tags,
          operationId: "getHomeBackupReport",
          summary: "Get the home backup report",
          description: "Returns the age, size and problems of the home backups of all workspaces.",
          access: "admins",
          scope: "all",
        }),
      },
    )
    .get(
      "/watch",
      ({ caller, request }) => {
        checkServerAdmin(caller);
        return openOwnersFeed(ctx, caller, request, (feed) => {
          let isReading = false;
          const sendBackups = async (): Promise<void> => {
            if (isReading) return;
            isReading = true;
            const backupList = await ctx.backupsByHand.list().finally(() => {
              isReading = false;
            });
            feed.send(JSON.stringify(backupList));
          };
          void sendBackups().catch(feed.fail);
          return ctx.backupsByHand.onChange(() => void sendBackups().catch(feed.fail));
        });
      },
      {
        user: true,
        response: { 101: Upgraded, ...fails(400, 401, 403, 503) },
        detail: operation({
          tags,
          operationId: "watchBackups",
          summary: "Watch backups",
          description:
            "A WebSocket of text messages. Each message is the complete list, sent immediately and after each step of the current work.",
          sends: Backups,
          access: "admins",
          scope: "all",
        }),
      },
    );
