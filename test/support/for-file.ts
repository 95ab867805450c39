// A fixture shared by all tests of a file: it is opened while the file loads, and disposed after its last test.
import { afterAll } from "bun:test";
import { Client } from "#src/client.ts";
import { ADMIN, startTestServer, type TestServer, type TestServerOptions } from "./server.ts";

/** Use as `const world = await forFile(openWorld())` at the top of a file. */
export const forFile = async <T extends AsyncDisposable>(opening: Promise<T>): Promise<T> => {
  const opened = await opening;
  afterAll(() => opened[Symbol.asyncDispose]());
  return opened;
};

/** Returns a server for all tests of a file, a client without a session, and the administrator's client. */
export const serverForFile = async (
  options: TestServerOptions = {},
): Promise<{ server: TestServer; anonymous: Client; admin: Client }> => {
  const server = await forFile(startTestServer(options));
  const anybody = new Client(server.url);
  return { server, anonymous: anybody, admin: await anybody.signIn(ADMIN.email, ADMIN.password) };
};
