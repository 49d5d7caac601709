/**
 * Entitlements: the features that a license unlocks (docs/api.md#v13). A product has defaults, and a license overrides them. Validators and
 * management merge the defaults and the overrides with `effectiveEntitlements`.
 */

import { z } from 'zod'

import { byteLength, text } from './text.ts'

const MAX_ENTITLEMENTS = 64
/** The maximum size in bytes, as JSON without spaces. It applies to a product, to a license, and to the merged entitlements. */
export const MAX_ENTITLEMENTS_BYTES = 4096

const NAME_RULE = 'must match ^[a-z][a-z0-9_.-]{0,63}$'
const VALUE_RULE = 'must be true, false, an integer, or a string of at most 256 characters'

const entitlementName = z.string().regex(/^[a-z][a-z0-9_.-]{0,63}$/, NAME_RULE)
const entitlementValue = z.union([z.boolean(), z.int(), text(256, 0)], VALUE_RULE)

function bounded<Value extends z.ZodType>(value: Value, description: string) {
  return z
    .record(entitlementName, value)
    .refine(
      (members) => Object.keys(members).length <= MAX_ENTITLEMENTS,
      `must have at most ${MAX_ENTITLEMENTS} members`,
    )
    .refine(
      (members) => entitlementsBytes(members) <= MAX_ENTITLEMENTS_BYTES,
      `must be at most ${MAX_ENTITLEMENTS_BYTES} bytes as JSON`,
    )
    .meta({ description, example: { edition: 'pro', seats: 5, export: true }, maxProperties: MAX_ENTITLEMENTS })
}

/** The defaults of a product. */
export const entitlements = bounded(
  entitlementValue,
  'The default entitlements of its licenses: names with `true`, `false`, an integer or a string.',
)
export type Entitlements = z.infer<typeof entitlements>

/** The overrides of a license. */
export const entitlementOverrides = bounded(
  z.union([z.boolean(), z.int(), text(256, 0), z.null()], `${VALUE_RULE}, or null`),
  "The overrides of the product's entitlements. `false` switches a default off, and null removes it.",
)
export type EntitlementOverrides = z.infer<typeof entitlementOverrides>

/** Returns the entitlements as they are stored: null instead of an empty object. */
export function storedEntitlements<Members extends object>(given: Members | undefined): Members | null | undefined {
  return given !== undefined && Object.keys(given).length === 0 ? null : given
}

/** Returns the size of entitlements in bytes, as JSON without spaces. */
export function entitlementsBytes(members: object): number {
  return byteLength(JSON.stringify(members))
}

type Unlocked<Value> = Exclude<Value, false | null | undefined>

function isUnlocked<Value>(value: Value): value is Unlocked<Value> {
  return value !== false && value !== null && value !== undefined
}

/**
 * Returns the entitlements of a license: the product's defaults with the license's overrides, without `false` and null. An app that tests
 * for the presence of a name therefore never grants what is switched off.
 */
export function effectiveEntitlements<Value>(
  product: Readonly<Record<string, Value>>,
  license: Readonly<Record<string, Value>>,
): Record<string, Unlocked<Value>> {
  const effective: Record<string, Unlocked<Value>> = {}
  for (const [name, value] of Object.entries({ ...product, ...license })) {
    if (isUnlocked(value)) effective[name] = value
  }
  return effective
}
