// Notifications by email, through an SMTP server on a real socket.
import { expect, test } from "bun:test";
import { NOTICE_KINDS } from "#schema/notifications/kinds.ts";
import { Client } from "#src/client.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { ADMIN, startTestServer, tempDirectory } from "#test/support/server.ts";
import { startSmtpServer } from "#test/support/smtp-server.ts";
import { until } from "#test/support/until.ts";

const toSmtpEnv = (port: number): Record<string, string> => ({
  SLIPWAY_SMTP_HOST: "127.0.0.1",
  SLIPWAY_SMTP_PORT: String(port),
  SLIPWAY_SMTP_TLS: "none",
  SLIPWAY_SMTP_FROM: "Slipway <slipway@example.com>",
  SLIPWAY_SMTP_USERNAME: "me",
  SLIPWAY_SMTP_PASSWORD: "pass",
});

test("[NO-7] sends an email to its recipient over an authenticated connection", async () => {
  using smtp = startSmtpServer();
  await using server = await startTestServer({ env: toSmtpEnv(smtp.port) });
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  await admin.post("/api/v2/notifications/test");
  const letter = await until(() => smtp.letters[0]);
  expect(letter).toMatchObject({ to: [`<${ADMIN.email}>`], user: "me:pass" });
  expect(letter.text).toContain("Subject: Test notification");
  expect(letter.text).toContain(server.url.href);
  await admin.put(`/api/v2/notifications/templates/${NOTICE_KINDS.test.id}/method`, { method: "inbox" });
  await admin.post("/api/v2/notifications/test");
  await until(
    async () => (await admin.get<{ unread_count: number }>("/api/v2/notifications/inbox")).unread_count === 2,
  );
  expect(smtp.letters).toHaveLength(1);
});

test("[NO-7] retries a rejected email later, even after a restart", async () => {
  const clock = new ManualClock();
  using smtp = startSmtpServer();
  using directory = tempDirectory();
  smtp.rejections.refuse = 1_000;
  const options = { clock, directory: directory.path, env: toSmtpEnv(smtp.port) };
  {
    await using server = await startTestServer(options);
    const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    await admin.post("/api/v2/notifications/test");
    await until(() => smtp.rejections.refuse < 1_000);
  }
  smtp.rejections.refuse = 0;
  await using server = await startTestServer(options);
  expect(smtp.letters).toHaveLength(0);
  await until(() => {
    clock.advance(10_000);
    return smtp.letters.length > 0;
  });
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  await admin.put("/api/v2/notifications/settings", { notifier_paused: true });
  await admin.post("/api/v2/notifications/test");
  for (let i = 0; i < 5; i++) clock.advance(10_000);
  await until(
    async () => (await admin.get<{ unread_count: number }>("/api/v2/notifications/inbox")).unread_count === 2,
  );
  expect(smtp.letters).toHaveLength(1);
  await admin.put("/api/v2/notifications/settings", { notifier_paused: false });
  await until(() => smtp.letters.length === 2);
});
