// A simulated cloud: openssl creates its certificates and signed documents in a temporary directory.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { needs } from "#test/support/needs.ts";

const openssl = (...args: string[]): void => {
  const { exitCode, stderr } = Bun.spawnSync([needs.openssl.file, ...args], { stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`openssl ${args[0]}: ${stderr.toString()}`);
};

export class Authority {
  readonly #path: string;

  /** All files are stored in this directory. */
  constructor(directory: string) {
    this.#path = directory;
    mkdirSync(directory, { recursive: true });
  }

  file(name: string): string {
    return join(this.#path, name);
  }

  pem(name: string): string {
    return readFileSync(this.file(`${name}.pem`), "utf8");
  }

  key(name: string): string {
    return readFileSync(this.file(`${name}.key`), "utf8");
  }

  /** Creates a certificate with its key, self-signed or signed by `issuer`. `days` counts from now, by the machine's clock. */
  certificate(name: string, commonName: string, { issuer = "", ca = false, days = 3650 } = {}): void {
    const key = this.file(`${name}.key`);
    const request = this.file(`${name}.csr`);
    const extensions = this.file(`${name}.ext`);
    writeFileSync(extensions, `basicConstraints=critical,CA:${ca ? "TRUE" : "FALSE"}\n`);
    openssl(
      "req",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-keyout",
      key,
      "-out",
      request,
      "-subj",
      `/O=Cloud/CN=${commonName}`,
    );
    const issuerArgs = issuer
      ? ["-CA", this.file(`${issuer}.pem`), "-CAkey", this.file(`${issuer}.key`), "-CAcreateserial"]
      : ["-key", key];
    const outputArgs = ["-out", this.file(`${name}.pem`), "-days", String(days), "-extfile", extensions];
    openssl("x509", "-req", "-in", request, ...issuerArgs, ...outputArgs);
  }

  /** Returns a PKCS#7 message in base64 with its content, signed by this certificate. */
  message(content: string, signer: string, ...options: string[]): string {
    const [input, output] = [this.file("content"), this.file("message")];
    writeFileSync(input, content);
    const signerArgs = ["-signer", this.file(`${signer}.pem`), "-inkey", this.file(`${signer}.key`)];
    openssl(
      "smime",
      "-sign",
      "-binary",
      "-nodetach",
      "-outform",
      "DER",
      "-in",
      input,
      "-out",
      output,
      ...signerArgs,
      ...options,
    );
    return readFileSync(output).toString("base64");
  }
}
