// The users for whom a workspace can be created.
import { expect, test } from "bun:test";
import type { MinimalUser } from "#schema/users/user.ts";
import { seedUser } from "#test/support/seed.ts";
import { openSharedWorkspace } from "./shared-workspace.ts";

test("[WC-6] lists only members of the organization, by name and in pages, and finds them by name or email address", async () => {
  await using shared = await openSharedWorkspace();
  const { clients, server, idOf } = shared;
  await seedUser(server, { username: "zoe-elsewhere" });
  const ora = clients["organization admin"];
  const base = "/api/v2/organizations/default/members/me/workspaces/available-users";
  const listNames = async (query = "") => (await ora.get<MinimalUser[]>(base + query)).map(({ username }) => username);
  const allNames = ["ada", "admin", "amy", "aud", "bob", "ora", "tia", "uma"];
  expect(await listNames()).toEqual(allNames);
  expect(await listNames("?limit=2&offset=1")).toEqual(allNames.slice(1, 3));
  expect(await listNames("?q=bob@example")).toEqual(["bob"]);
  expect(await listNames("?q=status:suspended")).toEqual([]);
  expect((await ora.get<MinimalUser[]>(`${base}?q=ada`))[0]).toEqual({
    id: idOf("ada"),
    username: "ada",
    name: "",
    avatar_url: "",
  });
  expect((await ora.fetch("GET", `${base}?limit=-1`)).status).toBe(400);
  expect((await ora.fetch("GET", `${base}?q=nothing:here`)).status).toBe(400);
  expect((await ora.fetch("GET", base.replace("/me/", "/unknown/"))).status).toBe(404);
  expect((await ora.fetch("GET", base.replace("/default/", "/nowhere/"))).status).toBe(404);
});
