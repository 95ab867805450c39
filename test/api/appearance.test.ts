// The deployment's appearance, and people's own display settings.
import { expect, test } from "bun:test";
import type { Appearance } from "#schema/deployment/appearance.ts";
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import type { JobLog, ProvisionerJob } from "#schema/workspaces/job.ts";
import { Client } from "#src/client.ts";
import { seedUser } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { importVersion } from "#test/support/templates.ts";
import { awaitBuild, createWorkspace, ECHO, seedTemplate } from "#test/support/workspaces.ts";
import { fetchStatus } from "./users/people.ts";

test("[DP-10] an owner sets the name and announcements that everyone sees; rejects invalid colors and image URLs", async () => {
  await using server = await startTestServer();
  const anonymous = new Client(server.url);
  const admin = await anonymous.signIn(ADMIN.email, ADMIN.password);
  const banner = { enabled: true, message: "Maintenance on Friday", background_color: "#1f6feb" };
  await admin.put("/api/v2/appearance", { application_name: "Harbour", announcement_banners: [banner] });
  await admin.put("/api/v2/appearance", { logo_url: "https://example.com/logo.png" });
  expect(await anonymous.get<Appearance>("/api/v2/appearance")).toMatchObject({
    application_name: "Harbour",
    logo_url: "https://example.com/logo.png",
    announcement_banners: [banner],
  });
  for (const invalidSettings of [
    ...[{ logo_url: "javascript:alert(1)" }, { service_banner: { ...banner, background_color: "red;x" } }],
    ...[{ announcement_banners: Array(6).fill(banner) }, { application_name: "x".repeat(65) }],
    { announcement_banners: [{ ...banner, message: "\u202etxet" }] },
  ]) {
    expect(await fetchStatus(admin, "PUT", "/appearance", invalidSettings)).toBe(400);
  }
  await admin.put("/api/v2/appearance", { application_name: "" });
  expect((await anonymous.get<Appearance>("/api/v2/appearance")).application_name).toBe("Slipway");
});

test("[DP-11] stores theme, font and the most recent parameter values per user", async () => {
  await using server = await startTestServer();
  const { template_id, organization_id } = await seedTemplate(server, {
    ...ECHO,
    parameters: [{ name: "size", type: "string", default: "small", mutable: true }],
  } as never);
  const people = [await seedUser(server, { organization_id }), await seedUser(server, { organization_id })];
  const [ada, bob] = people.map(({ token }) => new Client(server.url, token)) as [Client, Client];
  const appearance = { theme_preference: "dark", terminal_font: "fira-code" };
  await ada.put<unknown>("/api/v2/users/me/appearance", appearance);
  expect(await ada.get<object>("/api/v2/users/me/appearance")).toEqual(appearance);
  expect(await bob.get<object>("/api/v2/users/me/appearance")).toEqual({ theme_preference: "", terminal_font: "" });
  expect(await fetchStatus(ada, "PUT", "/users/me/appearance", { ...appearance, terminal_font: "comic" })).toBe(400);

  const alerts = { task_notification_alert_dismissed: true, wake_on_connect: true };
  expect(await ada.put<object>("/api/v2/users/me/preferences", alerts)).toEqual(alerts);
  expect(await ada.get<object>("/api/v2/users/me/preferences")).toEqual(alerts);
  expect(await bob.get<object>("/api/v2/users/me/preferences")).toEqual({
    task_notification_alert_dismissed: false,
    wake_on_connect: true,
  });
  expect(await fetchStatus(ada, "PUT", "/users/me/preferences", { task_notification_alert_dismissed: "yes" })).toBe(
    400,
  );

  const listAutofill = (client: Client) =>
    client.get<object[]>(`/api/v2/users/me/autofill-parameters?template_id=${template_id}`);
  const created = await ada.post<{ id: string }>("/api/v2/users/me/workspaces", {
    name: "dev",
    template_id,
    rich_parameter_values: [{ name: "size", value: "large" }],
  });
  await awaitBuild(ada, created.id);
  expect(await listAutofill(ada)).toEqual([{ name: "size", value: "large" }]);
  expect(await listAutofill(bob)).toEqual([]);
  const outsider = new Client(server.url, (await seedUser(server)).token);
  const path = `/users/me/autofill-parameters?template_id=${template_id}`;
  expect(await fetchStatus(outsider, "GET", path)).toBe(404);
});

test("[DP-12] lists an organization's jobs with logs, and returns a template version and its predecessor by name", async () => {
  await using server = await startTestServer();
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const { template_id, version_id, organization_id } = await seedTemplate(server, {
    ...ECHO,
    echo: { logs: ["hello"] },
  });
  const { token, user_id } = await seedUser(server, { organization_id });
  const ada = new Client(server.url, token);
  const workspace = await awaitBuild(ada, (await createWorkspace(ada, template_id, "dev")).id);
  const listJobs = (query = ""): Promise<ProvisionerJob[]> =>
    admin.get<ProvisionerJob[]>(`/api/v2/organizations/${organization_id}/provisionerjobs${query}`);
  const [newest] = await listJobs();
  expect(newest).toMatchObject({
    id: workspace.latest_build.job.id,
    type: "workspace_build",
    status: "succeeded",
    initiator_id: user_id,
    metadata: { workspace_name: "dev", template_id },
  });
  expect((await listJobs(`?initiator=${user_id}`)).map(({ id }) => id)).toEqual([workspace.latest_build.job.id]);
  expect(await listJobs("?status=pending,running")).toEqual([]);
  const base = `/organizations/${organization_id}/provisionerjobs`;
  expect(await fetchStatus(admin, "GET", `${base}?status=lost`)).toBe(400);
  expect(await fetchStatus(ada, "GET", base)).toBe(403);
  const job = await admin.get<ProvisionerJob>(`/api/v2${base}/${newest?.id}`);
  expect(job.metadata.workspace_id).toBe(workspace.id);
  expect((await admin.get<JobLog[]>(`/api/v2${base}/${newest?.id}/logs`)).length).toBeGreaterThan(0);
  const { name: otherOrganization } = await admin.post<{ name: string }>("/api/v2/organizations", { name: "other" });
  expect(await fetchStatus(admin, "GET", `/organizations/${otherOrganization}/provisionerjobs/${newest?.id}`)).toBe(
    404,
  );

  const template = await admin.get<{ name: string }>(`/api/v2/templates/${template_id}`);
  const first = await admin.get<TemplateVersion>(`/api/v2/templateversions/${version_id}`);
  const second = await importVersion(admin, JSON.stringify(ECHO), { template_id, name: "second" });
  const versions = `/organizations/${organization_id}/templates/${template.name}/versions`;
  expect((await admin.get<TemplateVersion>(`/api/v2${versions}/second`)).id).toBe(second.id);
  expect((await admin.get<TemplateVersion>(`/api/v2${versions}/second/previous`)).id).toBe(first.id);
  expect(await fetchStatus(admin, "GET", `${versions}/${first.name}/previous`)).toBe(404);
  expect(await fetchStatus(admin, "GET", `${versions}/third`)).toBe(404);
});
