/**
 * Reads a program's configuration from environment variables, before anything else starts. Each invalid value yields one
 * line that names the variable, the values allowed and the value received. The line omits a value that may be a secret,
 * judged by the name of its variable. An empty variable counts as not set.
 *
 * The names of all variables begin with `KEYWARD_`. A schema contains them without this prefix, which is also their old name. A program accepts
 * old names, and reports them once when it starts.
 */

import { isIP } from 'node:net'

import { z } from 'zod'

/** Reports invalid variables, with one line for each in `message`. `failStart` reports the message and exits with 1. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/**
 * Matches the names of variables that may contain secrets. Underscores or the ends of the name must surround one of these words, as in
 * `MASTER_KEY_PREVIOUS`.
 */
const SECRET_NAME = /(?:^|_)(?:TOKEN|KEY|URL|PASSWORD|SECRET)(?:_|$)/

const PREFIX = 'KEYWARD_'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Parses `env` with a zod object whose keys are the names of the variables without prefix. The schema may end in a `.transform`. Variables
 * that the schema does not contain are ignored. Throws `ConfigError` when a variable is invalid, or has different values under its two names.
 */
export function readConfig<T>(schema: z.ZodType<T>, env: Environment = process.env): T {
  const { values, nameOf, conflicts } = lookUp(schema, env)
  if (conflicts.length > 0) throw new ConfigError(conflicts.join('\n'))
  const result = schema.safeParse(values)
  if (result.success) return result.data
  const lines = new Map<string, string>()
  for (const issue of result.error.issues) {
    const key = String(issue.path[0] ?? 'environment')
    const name = nameOf.get(key) ?? key
    if (!lines.has(key)) lines.set(key, `${name} must be ${issue.message}; ${describe(key, values[key])}`)
  }
  throw new ConfigError([...lines.values()].join('\n'))
}

/** Returns the new name of each variable of the schema that is set only by its old name. */
export function oldNames(schema: z.ZodType, env: Environment = process.env): Record<string, string> {
  const { values, nameOf } = lookUp(schema, env)
  const old = [...nameOf].filter(([key, name]) => values[key] !== undefined && key === name && key !== fullName(key))
  return Object.fromEntries(old.map(([key]) => [key, fullName(key)]))
}

/** Returns the name of a variable with the prefix. */
export function fullName(key: string): string {
  return key.startsWith(PREFIX) ? key : PREFIX + key
}

/** The values of variables by their names with prefix. */
export type Variables = Readonly<Record<string, unknown>>

/**
 * Returns the values of a schema's variables, including defaults, or no values when one is invalid. The result is for
 * `explainStart`.
 */
export function effectiveVariables(schema: z.ZodObject, env: Environment = process.env): Variables {
  const { values, nameOf } = lookUp(schema, env)
  const entries = Object.entries(schema.safeParse(values).data ?? {})
  return Object.fromEntries(entries.map(([key, value]) => [nameOf.get(key) ?? key, value]))
}

/** Finds the values of the schema's variables, and for each the name under which it is set, or its new name if it is not set. */
function lookUp(schema: z.ZodType, env: Environment) {
  const values: Record<string, string | undefined> = {}
  const nameOf = new Map<string, string>()
  const conflicts: string[] = []
  for (const key of keysOf(schema)) {
    const name = fullName(key)
    const given = env[name] === '' ? undefined : env[name]
    const old = env[key] === '' ? undefined : env[key]
    if (given !== undefined && old !== undefined && given !== old)
      conflicts.push(`${name} and its old name ${key} have different values; remove ${key}`)
    const value = given ?? old
    if (value !== undefined) values[key] = value
    nameOf.set(key, given === undefined && old !== undefined ? key : name)
  }
  return { values, nameOf, conflicts }
}

function keysOf(schema: z.core.$ZodType): string[] {
  if (schema instanceof z.ZodObject) return Object.keys(schema.shape)
  return schema instanceof z.ZodPipe ? keysOf(schema.in) : []
}

function describe(name: string, value: string | undefined): string {
  if (value === undefined) return 'it is not set'
  return SECRET_NAME.test(name) ? 'the value received is not shown' : `got ${JSON.stringify(value.slice(0, 100))}`
}

/** Returns a schema that converts text with `parse`. `takes` describes the allowed values, as the continuation of "must be". */
export function variable<T>(takes: string, parse: (text: string) => T | undefined): z.ZodType<T, string> {
  return z.string({ error: takes }).transform((text, context) => {
    const value = parse(text)
    if (value !== undefined) return value
    context.addIssue({ code: 'custom', message: takes })
    return z.NEVER
  })
}

/** Returns a schema for integers from `min` to `max`, in decimal digits. */
export function integer(min: number, max: number, what = 'a whole number'): z.ZodType<number, string> {
  return variable(`${what} from ${min} to ${max}`, (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    return value >= min && value <= max ? value : undefined
  })
}

/** Returns a schema for a TCP port. With 0, the system chooses a free port. */
export const port = (): z.ZodType<number, string> => integer(0, 65_535, 'a port')

const UNITS_MS: Record<string, number> = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 }

/** Returns a schema that converts a duration such as `500ms`, `5s`, `15min`, `2h` or `30d` to milliseconds, at least `minMs`. */
export function durationMs(minMs = 0): z.ZodType<number, string> {
  const least = minMs === 0 ? '' : `, at least ${minMs}ms`
  return variable(`a duration such as 500ms, 5s, 15min, 2h or 30d${least}`, (text) => {
    const match = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|min|h|d)$/.exec(text)
    const unitMs = UNITS_MS[match?.[2] ?? '']
    if (unitMs === undefined) return undefined
    const value = Math.round(Number(match?.[1]) * unitMs)
    return value >= minMs ? value : undefined
  })
}

/** Returns a schema that splits text at commas and trims each entry. The caller validates the entries. */
export const list = (takes = 'a list separated by commas'): z.ZodType<string[], string> =>
  variable(takes, (text) => {
    const parts = text.split(',').map((part) => part.trim())
    return parts.every((part) => part !== '') ? parts : undefined
  })

/** Returns a schema for exactly one of the words. */
export function choice<const T extends string>(words: readonly T[]): z.ZodType<T, string> {
  return variable(`one of ${words.join(', ')}`, (text) => words.find((word) => word === text))
}

export const text = (takes = 'text'): z.ZodType<string, string> => variable(takes, (value) => value)

/** Returns a schema for the name of an HTTP header, which is converted to lower case. */
export const headerName = (): z.ZodType<string, string> =>
  variable('the name of a header', (name) =>
    /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(name) ? name.toLowerCase() : undefined,
  )

/** Returns whether a browser can send the value as `origin`. The scheme may be that of an app, and pages without an origin send `null`. */
function isOrigin(value: string): boolean {
  if (value === 'null') return true
  const url = URL.parse(value)
  return url !== null && `${url.protocol}//${url.host}` === value
}

/** Returns a schema for web origins separated by commas. It also accepts the words in `besides`. */
export function origins(besides: readonly string[] = []): z.ZodType<string[], string> {
  const takes = ['web origins such as https://example.com separated by commas', ...besides].join(', or ')
  return list(takes).refine((given) => given.every((one) => besides.includes(one) || isOrigin(one)), takes)
}

/** Returns a schema for the address that a program listens on. */
export const host = (): z.ZodType<string, string> =>
  variable('an IP address of this machine, or localhost', (value) =>
    isIP(value) !== 0 || value === 'localhost' ? value : undefined,
  )

/** Returns the origin of an HTTP address without a path, such as `http://host:port`. Returns undefined for any other text. */
export function parseHttpOrigin(value: string): string | undefined {
  const url = URL.parse(value)
  return url !== null && /^https?:$/.test(url.protocol) && `${url.origin}/` === url.href ? url.origin : undefined
}

/** Returns a schema for the HTTP address of another program, without a path. */
export const httpOrigin = (): z.ZodType<string, string> =>
  variable('an address such as http://host:9080', parseHttpOrigin)

/** Returns a schema for the HTTP addresses of other programs, separated by commas. */
export const httpOrigins = (): z.ZodType<string[], string> =>
  variable('addresses such as http://host:9080 separated by commas', (value) => {
    const parsed = value.split(',').map((part) => parseHttpOrigin(part.trim()))
    return parsed.every((one) => one !== undefined) ? parsed : undefined
  })

/** Returns a schema for a secret of at least `minLength` characters without spaces. */
export const secret = (minLength: number): z.ZodType<string, string> =>
  variable(`at least ${minLength} characters without spaces`, (value) =>
    value.length >= minLength && !/\s/.test(value) ? value : undefined,
  )

const POSTGRES_HOSTS = /^postgres(?:ql)?:\/\/(?:[^/?#]*@)?([^/?#]*)/
/** The values of `target_session_attrs` that the services support. Both select the primary. */
const SESSION_ATTRIBUTES = new Set(['read-write', 'primary'])
const POSTGRES_ADDRESS =
  'an address such as postgres://user:password@host:5432/database. It may contain several hosts, separated by commas, and ' +
  'target_session_attrs may be read-write or primary'

/** Returns a schema for a Postgres connection string. It may contain several hosts, which are separated by commas. */
export const postgresUrl = (): z.ZodType<string, string> =>
  variable(POSTGRES_ADDRESS, (value) => {
    const hosts = POSTGRES_HOSTS.exec(value)?.[1]
    if (hosts === undefined) return undefined
    const names = hosts.split(',')
    const isMissing = names.length > 1 && names.includes('')
    const addresses = names.map((name) => value.replace(hosts, () => name))
    return !isMissing && addresses.every((address) => isPrimaryAddress(address)) ? value : undefined
  })

function isPrimaryAddress(address: string): boolean {
  if (!URL.canParse(address)) return false
  const attributes = new URL(address).searchParams.get('target_session_attrs')
  return attributes === null || SESSION_ATTRIBUTES.has(attributes)
}

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]
export const logLevel = (): z.ZodType<LogLevel, string> => choice(LOG_LEVELS)
