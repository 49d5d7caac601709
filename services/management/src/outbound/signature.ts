/** Signs webhooks as Standard Webhooks 1.0.0 describes: HMAC-SHA256 over `id.timestamp.body`. */

import { createHmac, randomBytes } from 'node:crypto'

const PREFIX = 'whsec_'
const SECRET_BYTES = 32

/** Returns a new secret: the bytes that sign, and the text that the vendor gets. */
export function createWebhookSecret(): { bytes: Buffer; text: string } {
  const bytes = randomBytes(SECRET_BYTES)
  return { bytes, text: PREFIX + bytes.toString('base64') }
}

/** Returns the headers of a delivery. Each secret signs; receivers accept any of the signatures. */
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
