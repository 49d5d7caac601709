// Reading JSON from strangers: either an object or nothing.

/** The JSON object in `text`, or null when it is anything else. */
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

/** What an answer of the service says in words: `message` on v2, `detail` elsewhere. */
export function readMessage({ message, detail }: Record<string, unknown>): string | null {
  if (typeof message === 'string') return message
  return typeof detail === 'string' ? detail : null
}
