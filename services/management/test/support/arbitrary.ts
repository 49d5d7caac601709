/** Generates values from schemas with fast-check: mostly valid values, and sometimes any JSON in the place of a value. */

import fc from 'fast-check'
import { z } from 'zod'

const jsonSchema = z.looseObject({
  $ref: z.string().optional(),
  // Some schemas allow several types, and then any JSON is generated.
  type: z.string().optional().catch(undefined),
  format: z.string().optional(),
  const: z.unknown().optional(),
  enum: z.array(z.unknown()).optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  maxLength: z.number().optional(),
  items: z.unknown().optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
  required: z.array(z.string()).optional(),
  anyOf: z.array(z.unknown()).optional(),
  oneOf: z.array(z.unknown()).optional(),
  allOf: z.array(z.unknown()).optional(),
  $defs: z.record(z.string(), z.unknown()).optional(),
})

const MAX_LENGTH = 60
const MAX_ITEMS = 4

/** Returns an arbitrary for the input of a schema. */
export function arbitraryOf(schema: z.ZodType): fc.Arbitrary<unknown> {
  const root = jsonSchema.parse(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }))

  function strings(format: string | undefined, maxLength = MAX_LENGTH): fc.Arbitrary<string> {
    if (format === 'uuid') return fc.uuid()
    if (format === 'date-time') return fc.date({ noInvalidDate: true }).map((date) => date.toISOString())
    if (format === 'email') return fc.emailAddress()
    if (format === 'uri') return fc.webUrl()
    const length = { maxLength: Math.min(maxLength, MAX_LENGTH) }
    return fc.oneof(fc.string(length), fc.string({ ...length, unit: 'binary' }))
  }

  function valid(given: unknown): fc.Arbitrary<unknown> {
    const found = jsonSchema.parse(given)
    const options = found.anyOf ?? found.oneOf
    if (found.$ref !== undefined) return any(root.$defs?.[found.$ref.split('/').at(-1) ?? ''] ?? {})
    if (options !== undefined) return fc.oneof(...options.map(any))
    if (found.allOf !== undefined) return any(Object.assign({}, ...found.allOf))
    if (found.enum !== undefined) return fc.constantFrom(...found.enum)
    if ('const' in found) return fc.constant(found.const)
    if (found.type === 'string') return strings(found.format, found.maxLength)
    if (found.type === 'boolean') return fc.boolean()
    if (found.type === 'null') return fc.constant(null)
    if (found.type === 'number') return fc.double({ noNaN: true })
    if (found.type === 'integer')
      return fc.integer({
        min: Math.max(found.minimum ?? -10, -(2 ** 31)),
        max: Math.min(found.maximum ?? 1_000, 2 ** 31 - 1),
      })
    if (found.type === 'array') return fc.array(any(found.items ?? {}), { maxLength: MAX_ITEMS })
    if (found.properties === undefined) return fc.jsonValue({ maxDepth: 3 })
    const fields = Object.fromEntries(Object.entries(found.properties).map(([name, one]) => [name, any(one)]))
    return fc.record(fields, { requiredKeys: [...(found.required ?? [])] })
  }

  function any(given: unknown): fc.Arbitrary<unknown> {
    return fc.oneof({ weight: 12, arbitrary: valid(given) }, { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) })
  }

  return valid(root)
}
