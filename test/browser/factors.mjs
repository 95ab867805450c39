// A person sets up an authenticator app and a passkey, and signs in with each, using Chromium's virtual authenticator. With a folder,
// screenshots are written there. node factors.mjs CHROMIUM SERVER EMAIL PASSWORD [FOLDER [light|dark [WIDTH]]]
import { createHmac } from "node:crypto";
import { playInChromium } from "./chromium.mjs";
import { listMisfits } from "./misfits.mjs";

const [file, server, email, password, folder, colorScheme = "light", width = "1100"] = process.argv.slice(2);
const viewport = { width: Number(width), height: 800 };

/** Returns the code of an app with this key, `steps` from now. */
const computeCode = (key, steps = 0) => {
  const bits = [...key.replaceAll(" ", "")].map((c) =>
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(c).toString(2).padStart(5, "0"),
  );
  const bytes = bits
    .join("")
    .match(/.{8}/g)
    .map((byte) => Number.parseInt(byte, 2));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + steps));
  const hash = createHmac("sha1", Buffer.from(bytes)).update(counter).digest();
  return String((hash.readUInt32BE(hash[19] & 15) & 0x7fffffff) % 1_000_000).padStart(6, "0");
};

await playInChromium(file, { colorScheme, viewport }, async (page) => {
  const result = { misfits: [] };
  const takePicture = async (name) => {
    if (folder) await page.screenshot({ path: `${folder}/${name}-${colorScheme}-${width}.png`, fullPage: true });
    await page.setViewportSize({ width: 320, height: 640 });
    result.misfits.push(...(await page.evaluate(listMisfits)));
    await page.setViewportSize(viewport);
  };
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("WebAuthn.enable");
  const options = { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true };
  const { authenticatorId } = await cdp.send("WebAuthn.addVirtualAuthenticator", {
    options: { ...options, isUserVerified: true, automaticPresenceSimulation: true },
  });
  const signOut = async () => {
    await page.getByRole("button", { name: "admin" }).first().click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in to Slipway" }).waitFor();
    await page.goto(new URL("/login?redirect=/settings/security", server).href);
  };
  const dialog = page.getByRole("dialog");
  const signInWithPassword = async () => {
    await page.getByLabel("Email").fill(email);
    await page.getByLabel("Password").fill(password);
    await page.keyboard.press("Enter");
  };

  // A person who is required to have a second factor is always redirected to this page.
  await page.goto(new URL("/login?redirect=/settings/tokens", server).href);
  await signInWithPassword();
  await page.getByText("This server requires a second factor.").waitFor();
  result.redirectedTo = new URL(page.url()).pathname;
  await takePicture("security-required");

  await page.getByRole("button", { name: "Set up app" }).focus();
  await page.keyboard.press("Enter");
  const key = await page
    .getByLabel("Key for the app")
    .filter({ hasText: /^[A-Z2-7 ]{39}$/ })
    .textContent();
  result.qr = await page.getByAltText("QR code").evaluate((image) => image.decode().then(() => image.naturalWidth > 0));
  await takePicture("security-enrol");
  await page.getByLabel("Code", { exact: true }).fill("000000");
  await page.keyboard.press("Enter");
  result.wrongCode = await page.getByRole("alert").filter({ hasText: "code" }).textContent();
  await page.getByLabel("Code", { exact: true }).fill(computeCode(key));
  await page.keyboard.press("Enter");
  await page.getByText("Authenticator app set up").waitFor();
  const codes = (
    await page.getByLabel("Recovery codes", { exact: true }).and(page.locator("output")).textContent()
  ).split("\n");
  result.recovery = codes.length;
  result.focus = await page.evaluate(() => document.activeElement?.textContent);
  const [recovery] = codes;
  await takePicture("security-codes");

  await page.getByLabel("Name of the passkey").fill("laptop");
  await page.keyboard.press("Enter");
  await page.getByText("laptop added").waitFor();
  result.credentials = (await cdp.send("WebAuthn.getCredentials", { authenticatorId })).credentials.length;
  await takePicture("security-passkey");

  await signOut();
  await takePicture("login");
  await page.getByRole("button", { name: "Sign in with a passkey" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Delete laptop" }).waitFor();
  result.afterPasskey = new URL(page.url()).pathname;

  await signOut();
  await signInWithPassword();
  await page.getByRole("button", { name: "Use a passkey" }).waitFor();
  await takePicture("login-second");
  await page.getByRole("button", { name: "Use a passkey" }).click();
  await page.getByRole("button", { name: "Delete laptop" }).waitFor();

  await signOut();
  await signInWithPassword();
  await page.getByLabel("Code").fill("000000");
  await page.keyboard.press("Enter");
  result.refused = await page.getByRole("alert").filter({ hasText: "wrong" }).textContent();
  await page.getByLabel("Code").fill(recovery);
  await page.keyboard.press("Enter");
  await page.getByText("9 of ten are left.").waitFor();

  await page.getByRole("button", { name: "Remove app" }).click();
  await takePicture("security-disable");
  await dialog.getByLabel("Password").fill(password);
  await dialog.getByLabel("Code").fill(computeCode(key, 1));
  await page.getByRole("button", { name: "Confirm", exact: true }).click();
  await page.getByText("Authenticator app removed").waitFor();
  await page.getByRole("button", { name: "Delete laptop" }).click();
  await page.getByRole("button", { name: "Delete passkey" }).click();
  await page.getByText("This server requires a second factor.").waitFor();
  return result;
});
