/**
 * Reads a program's configuration from environment variables, all at once, before anything starts. An invalid value yields
 * one line that names the variable, the value received and the values allowed. A value that may be a secret, judged by the
 * name of its variable, is never repeated. An empty variable counts as one that is not set.
 */

import { isIP } from 'node:net'

import { z } from 'zod'

/** Invalid variables, one line each in `message`. The program prints it and exits with 1; see `failStart`. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/** Compared with each word between underscores, so `MASTER_KEY_PREVIOUS` is a secret too. */
const SECRET_NAME = /(?:^|_)(?:TOKEN|KEY|URL|PASSWORD|SECRET)(?:_|$)/

/**
 * Parses `env` with a zod object whose keys are the variables' names (it may end in a `.transform`).
 * Variables that are not in the schema are ignored. Throws ConfigError.
 */
export function readConfig<T>(schema: z.ZodType<T>, env: Record<string, string | undefined> = process.env): T {
  const given = withoutEmpty(env)
  const result = schema.safeParse(given)
  if (result.success) return result.data
  const lines = new Map<string, string>()
  for (const issue of result.error.issues) {
    const name = String(issue.path[0] ?? 'environment')
    if (!lines.has(name)) lines.set(name, `${name} ${describe(name, given[name])}; it takes ${issue.message}`)
  }
  throw new ConfigError([...lines.values()].join('\n'))
}

/** The values of variables by their names. */
export type Variables = Readonly<Record<string, unknown>>

/** Returns the variables of a schema as they apply, defaults included; none when one is invalid. For `explainStart`. */
export function effectiveVariables(
  schema: z.ZodObject,
  env: Record<string, string | undefined> = process.env,
): Variables {
  return schema.safeParse(withoutEmpty(env)).data ?? {}
}

/** An empty variable counts as one that is not set. */
function withoutEmpty(env: Record<string, string | undefined>): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''))
}

function describe(name: string, value: string | undefined): string {
  if (value === undefined) return 'is not set'
  return SECRET_NAME.test(name) ? 'has a bad value (not shown)' : `got ${JSON.stringify(value.slice(0, 100))}`
}

/** A variable whose text `parse` turns into a value; `takes` completes the sentence "it takes …". */
export function variable<T>(takes: string, parse: (text: string) => T | undefined): z.ZodType<T, string> {
  return z.string({ error: takes }).transform((text, context) => {
    const value = parse(text)
    if (value !== undefined) return value
    context.addIssue({ code: 'custom', message: takes })
    return z.NEVER
  })
}

export function integer(min: number, max: number, what = 'a whole number'): z.ZodType<number, string> {
  return variable(`${what} from ${min} to ${max}`, (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    return value >= min && value <= max ? value : undefined
  })
}

/** A TCP port; 0 lets the system choose one. */
export const port = (): z.ZodType<number, string> => integer(0, 65_535, 'a port')

const UNITS_MS: Record<string, number> = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 }

/** A duration such as `500ms`, `5s`, `15min`, `2h` or `30d`, in milliseconds, at least `minMs`. */
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

/** Comma-separated text, each part trimmed. The caller checks the parts. */
export const list = (takes = 'a list separated by commas'): z.ZodType<string[], string> =>
  variable(takes, (text) => {
    const parts = text.split(',').map((part) => part.trim())
    return parts.every((part) => part !== '') ? parts : undefined
  })

/** One of the given words, exactly. */
export function choice<const T extends string>(words: readonly T[]): z.ZodType<T, string> {
  return variable(`one of ${words.join(', ')}`, (text) => words.find((word) => word === text))
}

export const text = (takes = 'text'): z.ZodType<string, string> => variable(takes, (value) => value)

/** The name of an HTTP header, converted to lower case. */
export const headerName = (): z.ZodType<string, string> =>
  variable('the name of a header', (name) =>
    /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(name) ? name.toLowerCase() : undefined,
  )

/** Whether a browser can send the value as `origin`. Apps have schemes of their own; some pages send `null`. */
function isOrigin(value: string): boolean {
  if (value === 'null') return true
  const url = URL.parse(value)
  return url !== null && `${url.protocol}//${url.host}` === value
}

/** Comma-separated web origins, or words that `besides` lists. */
export function origins(besides: readonly string[] = []): z.ZodType<string[], string> {
  const takes = ['web origins such as https://example.com separated by commas', ...besides].join(', or ')
  return list(takes).refine((given) => given.every((one) => besides.includes(one) || isOrigin(one)), takes)
}

/** The address that a program listens on. */
export const host = (): z.ZodType<string, string> =>
  variable('an IP address of this machine, or localhost', (value) =>
    isIP(value) !== 0 || value === 'localhost' ? value : undefined,
  )

/** Returns an HTTP address without path as `http://host:port`, or undefined for anything else. */
export function parseHttpOrigin(value: string): string | undefined {
  const url = URL.parse(value)
  return url !== null && /^https?:$/.test(url.protocol) && `${url.origin}/` === url.href ? url.origin : undefined
}

/** The HTTP address of another program, without a path. */
export const httpOrigin = (): z.ZodType<string, string> =>
  variable('an address such as http://host:9080', parseHttpOrigin)

/** The HTTP addresses of other programs, separated by commas. */
export const httpOrigins = (): z.ZodType<string[], string> =>
  variable('addresses such as http://host:9080 separated by commas', (value) => {
    const parsed = value.split(',').map((part) => parseHttpOrigin(part.trim()))
    return parsed.every((one) => one !== undefined) ? parsed : undefined
  })

/** A secret of at least `minLength` characters without spaces. */
export const secret = (minLength: number): z.ZodType<string, string> =>
  variable(`at least ${minLength} characters without spaces`, (value) =>
    value.length >= minLength && !/\s/.test(value) ? value : undefined,
  )

/** A Postgres connection string. */
export const postgresUrl = (): z.ZodType<string, string> =>
  variable('an address such as postgres://user:password@host:5432/database', (value) =>
    /^postgres(?:ql)?:\/\//.test(value) && URL.canParse(value) ? value : undefined,
  )

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]
export const logLevel = (): z.ZodType<LogLevel, string> => choice(LOG_LEVELS)
