/** Names the bodies of operations, so that generators of clients give their types these names, such as `CreateLicenseRequest`. */

import type { z } from 'zod'

/** Returns the schema as a component of the document. A schema that has a name keeps it. */
export function named(schema: z.ZodType, operationId: string, kind: 'Request' | 'Response'): z.ZodType {
  const meta = schema.meta()
  if (meta?.id !== undefined) return schema
  return schema.meta({ ...meta, id: operationId.replace(/^./, (letter) => letter.toUpperCase()) + kind })
}
