/** Parses JSON objects from untrusted sources. */

/** Parses a JSON object. Returns null for any other text. */
export function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the message of a response: `message` on v2, `detail` elsewhere. Returns null when the response has neither. */
export function readMessage({ message, detail }: Record<string, unknown>): string | null {
  if (typeof message === 'string') return message
  return typeof detail === 'string' ? detail : null
}
