/** Calls the management API with the session cookie, which is HttpOnly, so that scripts cannot read it. */

import { type Problem, problem } from '@keyward/contract'
import type { z } from 'zod'

const BASE = '/api/v1'

/** An error that the API returned. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly problem: Problem

  constructor(received: Problem) {
    super(received.detail)
    this.problem = received
  }
}

/** Reports that a request received no response, or a response that does not match the schema. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError'
}

export type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'

export interface Request {
  method: string
  path: string
  body?: unknown
  /** Whether the service responds only after validators have applied the change, or after `WAIT_SECONDS`. */
  waits?: boolean
}

const WAIT_SECONDS = 3

async function send({ method, path, body, waits }: Request): Promise<Response> {
  const headers: Record<string, string> = {}
  if (body !== undefined) headers['content-type'] = 'application/json'
  if (waits === true) headers['prefer'] = `wait=${WAIT_SECONDS}`
  try {
    return await fetch(BASE + path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) })
  } catch (error) {
    throw new UnreachableError('The service did not respond. Check the connection and try again.', { cause: error })
  }
}

async function errorOf(response: Response): Promise<Error> {
  const parsed = problem.safeParse(await response.json().catch(() => null))
  if (parsed.success) return new ApiError(parsed.data)
  return new UnreachableError(`The service sent a response that the console does not understand (${response.status}).`)
}

export async function request(sent: Request): Promise<Response> {
  const response = await send(sent)
  if (!response.ok) throw await errorOf(response)
  return response
}

export async function parse<Schema extends z.ZodType>(response: Response, schema: Schema): Promise<z.output<Schema>> {
  const parsed = schema.safeParse(await response.json().catch(() => null))
  if (parsed.success) return parsed.data
  throw new UnreachableError('The service sent a response that the console does not understand.', {
    cause: parsed.error,
  })
}

/** Sends a request and returns its parsed response. Throws ApiError and UnreachableError. */
export async function call<Schema extends z.ZodType>(sent: Request, schema: Schema): Promise<z.output<Schema>> {
  return parse(await request(sent), schema)
}

/** The number of validators that have applied a change, and the number of live validators. */
export interface Applied {
  applied: number
  live: number
}

/** Returns null when the service did not wait for validators. */
export function appliedBy(response: Response): Applied | null {
  const [, applied, live] = /^(\d+)\/(\d+)$/.exec(response.headers.get('x-applied-by') ?? '') ?? []
  return applied === undefined ? null : { applied: Number(applied), live: Number(live) }
}

/** Sends a change like `call`. If `waits` is set, also returns how many validators have applied the change. */
export async function callAndApply<Schema extends z.ZodType>(
  sent: Request,
  schema: Schema,
  waits = true,
): Promise<{ result: z.output<Schema>; applied: Applied | null }> {
  const response = await request({ ...sent, waits })
  return { result: await parse(response, schema), applied: appliedBy(response) }
}

/** Sends a request like `call` and ignores the body of the response. */
export async function callWithoutResponse(sent: Request): Promise<void> {
  await request(sent)
}

/** Sends a change like `callAndApply` and ignores the body of the response. Returns how many validators have applied the change. */
export async function apply(sent: Request): Promise<Applied | null> {
  return appliedBy(await request({ ...sent, waits: true }))
}

/** Sends a request like `call` and returns the body of the response as text. */
export async function callForText(sent: Request): Promise<string> {
  return (await request(sent)).text()
}

/** Returns the non-empty members as a query string such as `?a=1&b=2`, or an empty string if all members are empty. */
export function queryString(members: Readonly<Record<string, string | number | null | undefined>>): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(members))
    if (value !== null && value !== undefined && value !== '') search.set(name, String(value))
  const text = search.toString()
  return text === '' ? '' : `?${text}`
}
