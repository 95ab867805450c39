// The schemas, whose types the app uses, import a few things of the server's runtime. Nothing of it comes into the browser.
declare const Bun: any;
declare const Buffer: any;
declare module "node:crypto" {
  export const randomBytes: any;
  export const timingSafeEqual: any;
}
