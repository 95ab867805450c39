// What all tests of a file share: it is opened while the file is read and disposed of after its last test.
import { afterAll } from "bun:test";
import { Client } from "#src/client.ts";
import { ADMIN, startTestServer, type TestServer, type TestServerOptions } from "./server.ts";

/** `const world = await forFile(openWorld())` at the top of a file. */
export const forFile = async <T extends AsyncDisposable>(opening: Promise<T>): Promise<T> => {
  const opened = await opening;
  afterAll(() => opened[Symbol.asyncDispose](), 120_000);
  return opened;
};

/** A server for all tests of a file, a client without a session, and the administrator's. */
export const serverForFile = async (
  options: TestServerOptions = {},
): Promise<{ server: TestServer; anybody: Client; admin: Client }> => {
  const server = await forFile(startTestServer(options));
  const anybody = new Client(server.url);
  return { server, anybody, admin: await anybody.signIn(ADMIN.email, ADMIN.password) };
};
