// Creates users through the API, and checks statuses of their requests.

import type { Clock } from "#base/clock.ts";
import { Encryption } from "#base/encryption.ts";
import type { Store } from "#db/engine/store.ts";
import { Accounts } from "#domain/users/accounts.ts";
import type { User } from "#schema/users/user.ts";
import type { Client } from "#src/client.ts";

/** Returns accounts that count password guesses without a server. */
export const accountsWith = (clock: Clock): Accounts =>
  new Accounts({ clock, store: { epoch: 1 } as Store, encryption: new Encryption(new Uint8Array(32)) });

export const PASSWORD = "a-long-enough-secret";

export type Person = { client: Client; user: User };

/** Creates a user with these site roles and signs them in. */
export const newPerson = async (admin: Client, username: string, roles: string[] = []): Promise<Person> => {
  const email = `${username}@example.com`;
  const user = await admin.post<User>("/api/v2/users", { email, username, password: PASSWORD, roles });
  return { client: await admin.withToken(undefined).signIn(email, PASSWORD), user };
};

/** Returns the status of a request. Throws for an error without a message. */
export const fetchStatus = async (client: Client, method: string, path: string, body?: unknown): Promise<number> => {
  const response = await client.fetch(method, `/api/v2${path}`, body);
  if (response.status >= 400) {
    const { message } = (await response.json()) as { message?: string };
    if (!message) throw new Error(`${method} ${path}: ${response.status} without a message`);
  } else await response.body?.cancel();
  return response.status;
};
