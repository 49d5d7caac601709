/** The option `--entitlement name=value` of the commands for products and licenses (docs/api.md#v13). */

import { InvalidArgumentError } from 'commander'
import { z } from 'zod'

import type { CliCommand } from '../command.ts'
import { EXIT, Failure } from '../failure.ts'

type Grant = boolean | number | string
type Value = Grant | null

const entitlementFlags = z.object({
  entitlement: z.record(z.string(), z.union([z.boolean(), z.number(), z.string(), z.null()])).optional(),
})

/** Adds the repeatable option `--entitlement` to a command. */
export function withEntitlements(command: CliCommand, what: string): CliCommand {
  const values = '`true`, `false`, an integer, or a text ("5" in double quotes is a text)'
  return command.option('--entitlement <name=value>', `${what} (repeatable); the value is ${values}`, collect)
}

/** Returns the member `entitlements` for the body of a request, or an empty object without the option. */
export function entitlementsOf(flags: unknown): { entitlements?: Record<string, Value> } {
  const { entitlement } = entitlementFlags.parse(flags)
  return entitlement === undefined ? {} : { entitlements: entitlement }
}

/** Returns the member `entitlements` for a product, which has no defaults to remove. Throws Failure for the value null. */
export function grantsOf(flags: unknown): { entitlements?: Record<string, Grant> } {
  const { entitlements } = entitlementsOf(flags)
  if (entitlements === undefined) return {}
  const grants = Object.entries(entitlements).map(([name, value]): [string, Grant] => {
    if (value === null) throw new Failure(EXIT.usage, `--entitlement ${name}=null is possible only for a license`)
    return [name, value]
  })
  return { entitlements: Object.fromEntries(grants) }
}

/** Returns the member `entitlements` with one line of text, or an empty object if there are none. */
export function describeEntitlements(members: Readonly<Record<string, Value>>): { entitlements?: string } {
  const parts = Object.entries(members).map(([name, value]) => `${name}=${written(value)}`)
  return parts.length === 0 ? {} : { entitlements: parts.join(', ') }
}

function collect(text: string, before: Readonly<Record<string, Value>> = {}): Record<string, Value> {
  const at = text.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('It must have the form name=value, such as seats=5.')
  return { ...before, [text.slice(0, at)]: read(text.slice(at + 1)) }
}

/** Reads a value: `true`, `false`, `null`, an integer, or a text with or without double quotes. */
function read(text: string): Value {
  if (text === 'true' || text === 'false') return text === 'true'
  if (text === 'null') return null
  if (/^-?\d{1,15}$/.test(text)) return Number(text)
  return /^".*"$/s.test(text) ? text.slice(1, -1) : text
}

function written(value: Value): string {
  return typeof value === 'string' && read(value) !== value ? `"${value}"` : String(value)
}
