import { oneLine } from '@keyward/contract/text'

/** The fields that name a resource, in order of preference. */
const NAMES = ['key', 'name', 'value', 'machineId', 'email', 'description', 'url', 'keyId'] as const

/** Returns the name of a resource of any type, or null when its fields contain none. */
export function nameAmong(fields: object | null | undefined): string | null {
  const values = new Map<string, unknown>(Object.entries(fields ?? {}))
  for (const name of NAMES) {
    const value = values.get(name)
    if (typeof value === 'string' && value !== '') return oneLine(value)
  }
  return null
}
