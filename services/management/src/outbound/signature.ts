/** Signs webhooks according to Standard Webhooks 1.0.0: the signature is the HMAC-SHA256 of `id.timestamp.body`. */

import { createHmac, randomBytes } from 'node:crypto'

const PREFIX = 'whsec_'
const SECRET_BYTES = 32

/** Returns a new secret: the bytes of the key, and the text that is shown to the vendor. */
export function createWebhookSecret(): { bytes: Buffer; text: string } {
  const bytes = randomBytes(SECRET_BYTES)
  return { bytes, text: PREFIX + bytes.toString('base64') }
}

/**
 * Returns the headers of a delivery. They contain one signature for each secret. Receivers accept a delivery if one of the signatures is
 * valid.
 */
export function signatureHeaders(
  secrets: readonly Uint8Array[],
  id: string,
  body: string,
  nowMs: number = Date.now(),
): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1_000))
  const signatures = secrets.map(
    (secret) => `v1,${createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64')}`,
  )
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') }
}
