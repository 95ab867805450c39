// Helpers for tests of second factors: they enroll and sign in like a person with an authenticator app.
import type { Generic } from "#schema/generic.ts";
import type { LoginRefused, TotpEnrolment } from "#schema/users/second-factor.ts";
import { computeCode, toStep } from "#src/authentication/totp.ts";
import { ApiError, Client } from "#src/client.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { ADMIN, startTestServer, type TestServer } from "#test/support/server.ts";
import { newPerson, PASSWORD, type Person } from "../users/people.ts";

export const STEP = 30_000;
export const LOGIN = "/api/v2/users/login";
export const SECOND_FACTOR_PATH = "/api/v2/users/login/second-factor";

export type FactorsWorld = AsyncDisposable & {
  readonly server: TestServer;
  readonly clock: ManualClock;
  readonly admin: Client;
  readonly anonymous: Client;
};

export const openWorld = async (env: Record<string, string> = {}): Promise<FactorsWorld> => {
  const clock = new ManualClock();
  const server = await startTestServer({ clock, env });
  const anonymous = new Client(server.url);
  const admin = await anonymous.signIn(ADMIN.email, ADMIN.password);
  return { server, clock, anonymous, admin, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
};

/** An authenticator app with one account. */
export class App {
  readonly #clock: ManualClock;
  readonly secret: string;

  constructor(clock: ManualClock, secret: string) {
    this.#clock = clock;
    this.secret = secret;
  }

  /** Returns the current code, or the one `steps` later. */
  code(steps = 0): string {
    return computeCode(this.secret, toStep(this.#clock.now()) + steps);
  }

  /** Returns the next code, after moving the clock to it: the current one may have been used. */
  next(): string {
    this.#clock.advance(STEP);
    return this.code();
  }
}

export type EnrolledPerson = Person & { app: App; recovery_codes: string[]; email: string };

/** Enrolls an app for a user who has just signed in. */
export const enrollApp = async (
  clock: ManualClock,
  client: Client,
): Promise<{ app: App; recovery_codes: string[] }> => {
  const started = await client.post<TotpEnrolment>("/api/v2/users/me/factors/totp");
  const app = new App(clock, started.secret);
  const created = await client.post<{ recovery_codes: string[] }>("/api/v2/users/me/factors/totp/confirm", {
    enrolment: started.enrolment,
    code: app.code(),
  });
  return { app, recovery_codes: created.recovery_codes };
};

export const createEnrolledPerson = async (
  { admin, clock }: FactorsWorld,
  name: string,
  roles: string[] = [],
): Promise<EnrolledPerson> => {
  const person = await newPerson(admin, name, roles);
  return { ...person, ...(await enrollApp(clock, person.client)), email: `${name}@example.com` };
};

/** Returns the challenge of a sign-in with the right password. */
export const startLogin = async (anonymous: Client, email: string, password = PASSWORD): Promise<string> => {
  const response = await anonymous.fetch("POST", LOGIN, { email, password });
  const { second_factor } = (await response.json()) as LoginRefused;
  if (response.status !== 401 || !second_factor)
    throw new Error(`the server did not request a second factor: ${response.status}`);
  return second_factor.challenge;
};

/** Returns the status of the second step of a sign-in. */
export const finishLogin = async (anonymous: Client, challenge: string, code: string): Promise<number> => {
  const response = await anonymous.fetch("POST", SECOND_FACTOR_PATH, { challenge, code });
  await response.body?.cancel();
  return response.status;
};

/** Returns the status and fields of an error; status 200 if there was none. */
export const awaitRejection = (
  requested: Promise<unknown>,
): Promise<{ status: number; fields: string[]; body?: Generic }> =>
  requested.then(
    () => ({ status: 200, fields: [] }),
    (error) => {
      if (!(error instanceof ApiError)) throw error;
      const fields = error.body.validations?.map(({ field }) => field) ?? [];
      return { status: error.status, fields, body: error.body };
    },
  );
