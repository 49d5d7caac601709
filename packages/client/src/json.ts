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

/** Returns the message of a response: `message` on v2, `detail` elsewhere. Returns null when the response has no text. */
export function readMessage({ message, detail }: Record<string, unknown>): string | null {
  return [message, detail].find((each): each is string => typeof each === 'string' && each !== '') ?? null
}
