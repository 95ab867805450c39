// A server that serves https directly, with certificates that the test creates.
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { readTls } from "#base/tls.ts";
import { needs, testNeeding } from "../support/needs.ts";
import { ADMIN, startTestServer, tempDirectory, testConfig } from "../support/server.ts";
import { makeCertificate } from "./certificate.ts";
import { runVerb } from "./run-verb.ts";

const toSettings = ({ cert, key }: { cert: string; key: string }) => ({
  SLIPWAY_TLS_CERT_FILE: cert,
  SLIPWAY_TLS_KEY_FILE: key,
});

describe("https", () => {
  testNeeding(
    [needs.openssl],
    "[OP-14] serves pages, API and WebSockets over https with Secure cookies, and `health` supports https",
    async () => {
      using temp = tempDirectory();
      const files = await makeCertificate(temp.path, "here");
      await using server = await startTestServer({ env: toSettings(files) });
      expect(server.url.protocol).toBe("https:");
      const tls = { ca: await Bun.file(files.cert).text() };
      const login = await fetch(new URL("/api/v2/users/login", server.url), {
        method: "POST",
        tls,
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ email: ADMIN.email, password: ADMIN.password }),
      });
      expect([login.status, login.headers.get("set-cookie")]).toEqual([201, expect.stringContaining("; Secure")]);
      const { session_token } = (await login.json()) as { session_token: string };
      const url = new URL("/api/v2/chats/watch", server.url);
      url.protocol = "wss:";
      const socket = new WebSocket(url, { tls, headers: { "Service-Session-Token": session_token } } as never);
      await new Promise<void>((resolve, reject) => {
        socket.onopen = () => resolve();
        socket.onerror = () => reject(new Error("the socket was refused"));
      });
      socket.close();
      const health = await runVerb([
        "health",
        "--address",
        server.url.host,
        "--tls-cert-file",
        files.cert,
        "--tls-key-file",
        files.key,
      ]);
      expect(health.printed).toBe("ready\n");
      const notRunning = await runVerb(["health", "--address", "127.0.0.1:1", "--json"]);
      expect([notRunning.code, JSON.parse(notRunning.printed)]).toEqual([1, expect.objectContaining({ ready: false })]);
      // Hosts that could be mistaken for a part of the path are not served (rule HT-1).
      const tlsArgs = ["--tls-cert-file", files.cert, "--tls-key-file", files.key, "--allowed-hosts", "localhost,ab"];
      const serveArgs = ["--data-dir", join(temp.path, "data"), "--address", "127.0.0.1:0", "--log-level", "error"];
      const { code, errors } = await runVerb(["serve", ...tlsArgs, ...serveArgs]);
      expect([code, errors]).toEqual([1, expect.stringContaining("slipway serve: the host ab is too short for https")]);
    },
  );

  testNeeding(
    [needs.openssl],
    "[OP-14] unusable files prevent the start with an explanation that does not reveal the key",
    async () => {
      using temp = tempDirectory();
      const [certificate, otherCertificate] = [
        await makeCertificate(temp.path, "one"),
        await makeCertificate(temp.path, "other"),
      ];
      const tryReadTls = (files: { cert: string; key: string }, now = Date.now()) => {
        try {
          return readTls(testConfig(temp.path, { env: toSettings(files) }), now);
        } catch (error) {
          return String(error);
        }
      };
      expect(tryReadTls(certificate)).toMatchObject({ expires_at: expect.any(Number) });
      expect(tryReadTls({ ...certificate, key: otherCertificate.key })).toContain("is not that of");
      expect(tryReadTls({ ...certificate, cert: join(temp.path, "none") })).toContain("tls_cert_file: ENOENT");
      expect(tryReadTls(certificate, Date.now() + 40 * 86_400_000)).toContain("has expired");
      const text = join(temp.path, "text");
      writeFileSync(text, "hello");
      expect(tryReadTls({ ...certificate, cert: text })).toContain("holds no certificate");
      expect(tryReadTls({ ...certificate, key: text })).toContain("holds no private key");
      const runDoctor = (key: string) =>
        runVerb([
          "doctor",
          "--data-dir",
          join(temp.path, "data"),
          "--address",
          "127.0.0.1:0",
          "--tls-cert-file",
          certificate.cert,
          "--tls-key-file",
          key,
        ]);
      expect((await runDoctor(certificate.key)).printed).toMatch(/ok +certificate +valid until/);
      expect((await runDoctor(otherCertificate.key)).printed).toMatch(/WRONG +certificate/);
    },
  );

  test("[OP-14] a certificate without a key is refused", async () => {
    const { code, printed } = await runVerb(["doctor", "--tls-cert-file", "x.pem"]);
    expect(code).toBe(1);
    expect(printed).toContain("SLIPWAY_TLS_KEY_FILE");
  });
});
