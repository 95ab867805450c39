// Instance identities of each cloud, checked with the files that an administrator trusts: valid ones are accepted, similar ones refused.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createPrivateKey, sign } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { verifyAwsIdentity } from "#src/identity/aws.ts";
import { verifyAzureIdentity } from "#src/identity/azure.ts";
import { verifyGoogleIdentity } from "#src/identity/google.ts";
import { IdentityError, IdentityFiles } from "#src/identity/identity.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { tempDirectory } from "#test/support/server.ts";
import { Authority } from "./authority.ts";

const DAY_MS = 86_400_000;
const directory = tempDirectory();
const trusted = join(directory.path, "trusted");
const cloud = new Authority(join(directory.path, "cloud"));
const clock = new ManualClock();
const files = new IdentityFiles(trusted, clock);
const now = clock.now();
const writeTrusted = (name: string, text: string) => writeFileSync(join(trusted, name), text);
const describeResult = async (verify: () => string | Promise<string>): Promise<string> => {
  try {
    return `accepted: ${await verify()}`;
  } catch (error) {
    if (!(error instanceof IdentityError)) throw error;
    return error.message;
  }
};

beforeAll(() => {
  for (const folder of ["a", "b/roots", "b/intermediates", "c"]) mkdirSync(join(trusted, folder), { recursive: true });
  if (!needs.openssl.found) return;
  cloud.certificate("region-1", "Region one");
  cloud.certificate("region-2", "Region two");
  cloud.certificate("region-old", "Region of old", { days: 1 });
  cloud.certificate("region-none", "Not of ours");
  writeTrusted("a/regions.pem", `first\n${cloud.pem("region-1")}\nsecond\n${cloud.pem("region-2")}`);
  writeTrusted("a/old.pem", cloud.pem("region-old"));
  cloud.certificate("root", "Root", { ca: true });
  cloud.certificate("other-root", "Other root", { ca: true });
  cloud.certificate("middle", "Middle", { issuer: "root", ca: true });
  cloud.certificate("hidden", "Hidden middle", { issuer: "root", ca: true });
  cloud.certificate("leaf", "metadata.azure.com", { issuer: "middle" });
  writeTrusted("b/roots/root.pem", cloud.pem("root"));
  writeTrusted("b/intermediates/middle.pem", cloud.pem("middle"));
});
afterAll(() => directory[Symbol.dispose]());

describe("AWS", () => {
  const DOCUMENT = '{\n  "instanceId" : "i-0123456789",\n  "region" : "one"\n}';
  const signDocument = (name: string, document = DOCUMENT, digest = "RSA-SHA256") =>
    sign(digest, Buffer.from(document), createPrivateKey(cloud.key(name))).toString("base64");
  const verify = (signature: string, document = DOCUMENT, time = now) =>
    describeResult(() => verifyAwsIdentity(files, { document, signature }, time));

  testNeeding(
    [needs.openssl],
    "[II-1] a document signed with the certificate of any region identifies the instance",
    async () => {
      for (const region of ["region-1", "region-2"]) {
        expect(await verify(signDocument(region))).toBe("accepted: i-0123456789");
        const broken = signDocument(region).replace(/.{64}/g, "$&\n");
        expect(await verify(broken)).toBe("accepted: i-0123456789");
      }
    },
  );

  testNeeding(
    [needs.openssl],
    "[II-1] a document that was changed, or signed with another key, is refused",
    async () => {
      const valid = signDocument("region-1");
      const untrusted = "no trusted certificate has signed the document";
      expect(await verify(valid, DOCUMENT.replace("i-0", "i-1"))).toBe(untrusted);
      expect(await verify(valid, `${DOCUMENT} `)).toBe(untrusted);
      expect(await verify(signDocument("region-none"))).toBe(untrusted);
      expect(await verify(signDocument("region-old"))).toBe(untrusted);
      expect(await verify(signDocument("region-1", DOCUMENT, "RSA-SHA1"))).toBe(untrusted);
      expect(await verify(`${valid.startsWith("A") ? "B" : "A"}${valid.slice(1)}`)).toBe(untrusted);
      expect(await verify(valid.slice(0, 40))).toBe(untrusted);
      expect(await verify("not base64!")).toBe("the signature is not base64");
      expect(await verify("")).toBe("the signature is not base64");
      expect(await verify(valid, DOCUMENT, now + 3650 * DAY_MS)).toBe(
        "this server trusts no certificate of that cloud",
      );
      const withoutId = '{"instanceId":7}';
      expect(await verify(signDocument("region-1", withoutId), withoutId)).toBe("it has no instanceId");
      expect(await verify(signDocument("region-1", "text"), "text")).toBe("the document is not JSON");
      const withoutFiles = new IdentityFiles(undefined, clock);
      expect(
        await describeResult(() => verifyAwsIdentity(withoutFiles, { document: DOCUMENT, signature: valid }, now)),
      ).toContain("trusts no");
    },
  );
});

describe("Azure", () => {
  const document = (expiresOn = "01/02/30 00:00:00 -0000") =>
    JSON.stringify({ vmId: "vm-1", timeStamp: { createdOn: "01/01/30 00:00:00 -0000", expiresOn } });
  const verify = (message: string, time = now) => describeResult(() => verifyAzureIdentity(files, message, time));
  const NO_ROOT = "the signer does not lead to a trusted root";

  testNeeding(
    [needs.openssl],
    "[II-2] a message whose signer has the cloud's name and chains to a root identifies the machine",
    async () => {
      expect(await verify(cloud.message(document(), "leaf"))).toBe("accepted: vm-1");
      const withoutTimes = '{"vmId":"vm-2"}';
      expect(await verify(cloud.message(withoutTimes, "leaf", "-md", "sha384"))).toBe("accepted: vm-2");
      cloud.certificate("below", "east.metadata.azure.us", { issuer: "hidden" });
      expect(await verify(cloud.message(document(), "below"))).toBe(NO_ROOT);
      expect(await verify(cloud.message(document(), "below", "-certfile", cloud.file("hidden.pem")))).toBe(
        "accepted: vm-1",
      );
    },
  );

  testNeeding(
    [needs.openssl],
    "[II-2] another name, another root, and a certificate that may not sign others are refused",
    async () => {
      for (const [i, name] of [
        "metadata.azure.com.evil.com",
        "xmetadata.azure.com",
        "azure.com",
        "metadata",
      ].entries()) {
        cloud.certificate(`named-${i}`, name, { issuer: "middle" });
        expect(await verify(cloud.message(document(), `named-${i}`))).toBe(
          "the signer's certificate does not have a name of Azure's metadata service",
        );
      }
      cloud.certificate("foreign", "metadata.azure.com", { issuer: "other-root" });
      expect(await verify(cloud.message(document(), "foreign", "-certfile", cloud.file("other-root.pem")))).toBe(
        NO_ROOT,
      );
      cloud.certificate("self", "metadata.azure.com");
      expect(await verify(cloud.message(document(), "self"))).toBe(NO_ROOT);
      cloud.certificate("grandchild", "metadata.azure.com", { issuer: "leaf" });
      expect(await verify(cloud.message(document(), "grandchild", "-certfile", cloud.file("leaf.pem")))).toBe(NO_ROOT);
      cloud.certificate("short", "metadata.azure.com", { issuer: "middle", days: 1 });
      expect(await verify(cloud.message(document(), "short"))).toBe(NO_ROOT);
    },
  );

  testNeeding(
    [needs.openssl],
    "[II-2] an altered message, a weak digest, two signers, no content and an old document are refused",
    async () => {
      const valid = Buffer.from(cloud.message(document(), "leaf"), "base64");
      const idIndex = valid.indexOf("vm-1");
      const altered = Buffer.from(valid);
      altered[idIndex + 3] = "2".charCodeAt(0);
      expect(await verify(altered.toString("base64"))).toBe("the message was altered or its signer is not enclosed");
      expect(await verify(cloud.message(document(), "leaf", "-md", "sha1"))).toBe("the message uses a weak digest");
      expect(await verify(cloud.message(document(), "leaf", "-nocerts"))).toBe(
        "the message was altered or its signer is not enclosed",
      );
      expect(await verify(cloud.message(document("12/31/29 23:59:59 -0000"), "leaf"))).toBe(
        "the document is past its time",
      );
      expect(await verify(cloud.message(document("soon"), "leaf"))).toBe("the time of the document cannot be read");
      const secondSigner = ["-signer", cloud.file("below.pem"), "-inkey", cloud.file("below.key")];
      expect(await verify(cloud.message(document(), "leaf", ...secondSigner))).toContain("one signer");
      for (const message of [
        "AAAA",
        valid.subarray(0, 100).toString("base64"),
        Buffer.from("text").toString("base64"),
      ]) {
        expect(await verify(message)).toBe("the signature is not a signed PKCS#7 message");
      }
      // No changed message identifies another machine.
      for (let i = 0; i < valid.length; i += 97) {
        const changed = Buffer.from(valid);
        changed[i] = (changed[i] as number) ^ 0x55;
        expect(["accepted: vm-1", "refused"]).toContain(
          (await verify(changed.toString("base64"))).replace(/^(?!accepted).*/, "refused"),
        );
      }
    },
  );
});

describe("Google Cloud", () => {
  const claims = { google: { compute_engine: { instance_id: "4711" } } };
  const keyPair = generateKeyPair("RS256", { extractable: true });
  const token = async (
    payload: object = claims,
    {
      at: time = now,
      key = keyPair,
      alg = "RS256",
      aud = "coder",
      iss = "https://accounts.google.com",
      seconds = 3600,
    } = {},
  ) =>
    new SignJWT({ ...payload })
      .setProtectedHeader({ alg, kid: "one" })
      .setAudience(aud)
      .setIssuer(iss)
      .setIssuedAt(time / 1000)
      .setExpirationTime(time / 1000 + seconds)
      .sign((await key).privateKey);
  const verify = async (jwt: string, time = now) =>
    describeResult(() => verifyGoogleIdentity(files, jwt, { now: time, accessUrl }));
  const accessUrl = new URL("https://slipway.example/");
  const REFUSAL =
    "the token is malformed, past its time, made for another service, or signed with none of the trusted keys";

  test("[II-3] a token signed with a trusted key identifies the instance; without keys no token is accepted", async () => {
    const withoutKeys = new IdentityFiles(join(directory.path, "nowhere"), clock);
    expect(
      await describeResult(async () => verifyGoogleIdentity(withoutKeys, await token(), { now, accessUrl })),
    ).toContain("trusts no key");
    const jwk = { ...(await exportJWK((await keyPair).publicKey)), kid: "one", alg: "RS256" };
    writeTrusted("c/keys.json", JSON.stringify({ keys: [jwk] }));
    expect(await verify(await token())).toBe("accepted: 4711");
  });

  test("[II-3] other keys, expired tokens, no expiry, no signature and no instance are refused", async () => {
    expect(await verify(await token(claims, { key: generateKeyPair("RS256", { extractable: true }) }))).toBe(REFUSAL);
    expect(await verify(await token(claims, { at: now - DAY_MS }))).toBe(REFUSAL);
    const valid = await token();
    const [header, body, signature] = valid.split(".") as [string, string, string];
    const otherBody = Buffer.from(JSON.stringify({ ...claims, exp: now / 1000 + 9999 })).toString("base64url");
    expect(await verify([header, otherBody, signature].join("."))).toBe(REFUSAL);
    const unsignedHeader = Buffer.from('{"alg":"none"}').toString("base64url");
    expect(await verify([unsignedHeader, body, ""].join("."))).toBe(REFUSAL);
    const withoutExpiry = await new SignJWT(claims)
      .setProtectedHeader({ alg: "RS256", kid: "one" })
      .sign((await keyPair).privateKey);
    expect(await verify(withoutExpiry)).toBe(REFUSAL);
    expect(await verify("")).toBe(REFUSAL);
    expect(await verify("a.b.c")).toBe(REFUSAL);
    expect(await verify(await token({ google: {} }))).toBe("it has no google.compute_engine.instance_id");
  });

  test("[II-3] a token of the machine for another service, or of another issuer, is refused", async () => {
    for (const aud of ["slipway", "https://slipway.example", "https://slipway.example/"])
      expect(await verify(await token(claims, { aud }))).toBe("accepted: 4711");
    for (const options of [{ aud: "https://other.example" }, { iss: "https://other.example" }, { seconds: 90_000 }])
      expect(await verify(await token(claims, options))).toBe(REFUSAL);
  });

  test("[II-4] the files are reread after a minute, so that new keys need no restart", async () => {
    const nextKeyPair = generateKeyPair("RS256", { extractable: true });
    expect(await verify(await token(claims, { key: nextKeyPair }))).toBe(REFUSAL);
    const jwk = { ...(await exportJWK((await nextKeyPair).publicKey)), kid: "one", alg: "RS256" };
    // Unreadable files are skipped without affecting others.
    writeTrusted("c/broken.json", "{");
    writeTrusted("c/strange.json", '{"keys":7}');
    writeTrusted("a/broken.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    writeTrusted("c/next.json", JSON.stringify({ keys: [jwk] }));
    expect(await verify(await token(claims, { key: nextKeyPair }))).toBe(REFUSAL);
    clock.advance(60_001);
    expect(await verify(await token(claims, { key: nextKeyPair }))).toBe("accepted: 4711");
    const certificates = files.regions.list();
    expect(certificates.length).toBe(needs.openssl.found ? 3 : 0);
  });
});
