/** Parses the parameters, the query and the body of a request with the schemas of its operation. */

import { describeIssue } from '@keyward/contract'
import { z } from 'zod'

import type { RequestBody } from '../http/body.ts'
import { ApiError, invalidRequest, quote, type ValidationError } from '../http/problem.ts'
import { validationErrors } from '../http/validation-errors.ts'
import type { Endpoint } from './implement.ts'

interface RawInput {
  params: unknown
  query: unknown
  body: Pick<RequestBody, 'value' | 'split'>
}

export interface Input {
  params: Record<string, string>
  query: Record<string, unknown>
  body: unknown
}

const nothing = z.strictObject({})
/** The schema of a body without fields, which is absent or an empty object. */
const noBody = nothing.optional()

/** Returns the error for a malformed id. Its status is 404, as for an unknown id. */
function malformedId(error: z.ZodError, params: unknown): ApiError {
  const name = String(error.issues[0]?.path[0])
  const values = typeof params === 'object' && params !== null ? Object.entries(params) : []
  const value = String(values.find(([key]) => key === name)?.[1])
  return new ApiError('NOT_FOUND', `The id in the path must be a UUID; got ${quote(value)}.`)
}

/** Returns the parsed body, or its validation errors. Throws IMPORT_TOO_LARGE. */
async function parseBody(
  { operation, rows }: Endpoint,
  { value, split }: RawInput['body'],
): Promise<{ data: unknown } | { errors: ValidationError[]; count: number }> {
  if (rows && split) return rows.parse(split)
  // The handler parses a signed body after it has verified the signature, because parsing takes much longer.
  if (operation.needs === 'signature') return { data: undefined }
  const schema = rows?.schema ?? operation.body ?? noBody
  const parsed = schema.safeParse(value, { error: describeIssue })
  return parsed.success ? { data: parsed.data } : validationErrors('#', parsed.error)
}

/** Throws NOT_FOUND for a malformed id, INVALID_REQUEST with every validation error, and IMPORT_TOO_LARGE. */
export async function parseInput(endpoint: Endpoint, input: RawInput): Promise<Input> {
  const params = (endpoint.params ?? nothing).safeParse(input.params)
  if (!params.success) throw malformedId(params.error, input.params)
  const query = (endpoint.operation.query ?? nothing).safeParse(input.query, { error: describeIssue })
  const inQuery = query.success ? { errors: [], count: 0 } : validationErrors('?', query.error)
  const body = await parseBody(endpoint, input.body)
  const inBody = 'errors' in body ? body : { errors: [], count: 0 }
  if (!query.success || 'errors' in body)
    throw invalidRequest([...inQuery.errors, ...inBody.errors], inQuery.count + inBody.count)
  return { params: params.data, query: query.data, body: body.data }
}
