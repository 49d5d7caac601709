/** SHA-256 with `crypto.subtle`, which Node and pages over https have. */

export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

export async function sha256(bytes: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', Uint8Array.from(bytes)))
}
