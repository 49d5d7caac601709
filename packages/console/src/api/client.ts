/**
 * Calls operations of the management API with the session cookie, which is HttpOnly, so that scripts cannot read it. A change that
 * validators apply waits for them.
 */

import { type Problem, problem } from '@keyward/contract'
import {
  type AnyInput,
  type InputOf,
  methodOf,
  type Operation,
  type ResultOf,
  urlOf,
} from '@keyward/contract/operations'

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

const WAIT_SECONDS = 3

async function errorOf(response: Response): Promise<Error> {
  const parsed = problem.safeParse(await response.json().catch(() => null))
  if (parsed.success) return new ApiError(parsed.data)
  return new UnreachableError(`The service sent a response that the console does not understand (${response.status}).`)
}

/** The number of validators that have applied a change, and the number of live validators. */
export interface Applied {
  applied: number
  live: number
}

/** Returns null when the service did not wait for validators. */
function appliedBy(response: Response): Applied | null {
  const [, applied, live] = /^(\d+)\/(\d+)$/.exec(response.headers.get('x-applied-by') ?? '') ?? []
  return applied === undefined ? null : { applied: Number(applied), live: Number(live) }
}

/** Returns the URL of a GET operation for a link, such as to a download. */
export function hrefOf<One extends Operation>(operation: One, input: InputOf<One>): string
export function hrefOf(operation: Operation, input: AnyInput): string {
  return urlOf(operation, input)
}

async function resultOf({ file, returns }: Operation, response: Response): Promise<unknown> {
  if (file !== undefined) return response.text()
  if (returns === undefined) return undefined
  const parsed = returns.safeParse(await response.json().catch(() => null))
  if (parsed.success) return parsed.data
  throw new UnreachableError('The service sent a response that the console does not understand.', {
    cause: parsed.error,
  })
}

const unauthorized = new Set<() => void>()

/** Calls the listener after each response of 401 to an operation that needs a session. Returns a function that ends this. */
export function onUnauthorized(listener: () => void): () => void {
  unauthorized.add(listener)
  return () => void unauthorized.delete(listener)
}

async function send(
  operation: Operation,
  input: AnyInput,
  { waits, token, version, idempotencyKey }: Options,
): Promise<Response> {
  const { body } = input
  const headers: Record<string, string> = {}
  if (body !== undefined) headers['content-type'] = 'application/json'
  if (token !== undefined) headers['authorization'] = `Bearer ${token}`
  if (version !== undefined) headers['if-match'] = `"${version}"`
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
  if (waits && operation.propagates === true) headers['prefer'] = `wait=${WAIT_SECONDS}`
  const init = { method: methodOf(operation), headers, ...(body !== undefined && { body: JSON.stringify(body) }) }
  try {
    return await fetch(hrefOf(operation, input), init)
  } catch (error) {
    throw new UnreachableError('The service did not respond. Check the connection and try again.', { cause: error })
  }
}

interface Options {
  /** Whether to wait until validators have applied the change. */
  waits: boolean
  /** A secret that authenticates the request instead of the session. */
  token?: string
  /** The version that the resource must still have. */
  version?: string
  /** A text that makes the service perform repeated requests once. */
  idempotencyKey?: string
}

/**
 * Calls an operation. Throws ApiError and UnreachableError. If validators apply the change, the service responds when all of them have
 * applied it, or after `WAIT_SECONDS`. One of many changes does not wait, with `waits` set to false.
 */
export async function callAndApply<One extends Operation>(
  operation: One,
  input: InputOf<One>,
  options?: Options,
): Promise<{ result: ResultOf<One>; applied: Applied | null }>
export async function callAndApply(operation: Operation, input: AnyInput, options: Options = { waits: true }) {
  const response = await send(operation, input, options)
  if (response.status === 401 && operation.needs !== 'nothing') for (const listener of unauthorized) listener()
  if (!response.ok) throw await errorOf(response)
  return { result: await resultOf(operation, response), applied: appliedBy(response) }
}

/** Calls an operation like `callAndApply`, and returns only its result. */
export async function call<One extends Operation>(
  operation: One,
  input: InputOf<One>,
  options?: Options,
): Promise<ResultOf<One>> {
  return (await callAndApply(operation, input, options)).result
}
