/** Declares the function of `node:net` that `api/net.ts` replaces in the build. */

declare module 'node:net' {
  export function isIPv6(text: string): boolean
}
