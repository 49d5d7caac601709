/** The function of `node:net` that the address package uses, for browsers. */

import ipaddr from 'ipaddr.js'

/** Returns whether the text is an IPv6 address of RFC 4291. */
export function isIPv6(text: string): boolean {
  return !text.includes('%') && ipaddr.IPv6.isValid(text)
}
