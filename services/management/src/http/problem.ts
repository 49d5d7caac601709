/**
 * Defines the errors of responses. An `ApiError` has a code of the contract and a public text. Every other error becomes INTERNAL or
 * UNAVAILABLE. Its message is written to the log only.
 */

import { type Problem, type ProblemCode, PROBLEMS } from '@keyward/contract'
import { isConnectionFailure, isDiskFull, isRetryable, isServerUnavailable } from '@keyward/database'

export interface ValidationError {
  /** A JSON pointer into the body (`#/…`), or the name of a query parameter (`?name`). */
  pointer: string
  detail: string
}

interface ErrorOptions {
  /** Replaces the status of the code. */
  status?: number
  errors?: ValidationError[]
  ruleId?: string
  mergedInto?: string
  /** The current representation of a resource with another version. */
  current?: unknown
  quota?: { name: string; limit: number; used: number }
  headers?: Record<string, string>
}

export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: ProblemCode
  readonly options: ErrorOptions

  /** Without `detail`, the detail is the title of the code. */
  constructor(code: ProblemCode, detail?: string, options: ErrorOptions = {}) {
    super(detail ?? PROBLEMS[code].title)
    this.code = code
    this.options = options
  }

  get status(): number {
    return this.options.status ?? PROBLEMS[this.code].status
  }
}

const MAX_QUOTED_LENGTH = 100

/** Returns a received value in quotes, cut to 100 characters, for the detail of an error. */
export function quote(value: string): string {
  return JSON.stringify(value.length > MAX_QUOTED_LENGTH ? `${value.slice(0, MAX_QUOTED_LENGTH)}…` : value)
}

/** Returns INVALID_REQUEST with one validation error. `detail` completes a sentence that begins with the field. */
export function invalid(pointer: string, detail: string): ApiError {
  return invalidRequest([{ pointer, detail }])
}

/** The maximum number of validation errors in a response, except for the rows of an import. */
export const MAX_LISTED_ERRORS = 100

/** Returns INVALID_REQUEST with the first `maxListed` validation errors. Its detail states `count`, the number of all errors. */
export function invalidRequest(
  found: readonly ValidationError[],
  count = found.length,
  maxListed = MAX_LISTED_ERRORS,
): ApiError {
  const errors = found.slice(0, maxListed)
  return new ApiError('INVALID_REQUEST', summary(errors, count), { errors })
}

function summary(listed: readonly ValidationError[], count: number): string {
  const [first] = listed
  if (first && count === 1) return `${first.pointer} ${first.detail}.`
  const counted = `The request has ${count} validation errors`
  return count > listed.length ? `${counted}; the first ${listed.length} are listed.` : `${counted}.`
}

/** Returns the error for an unknown id and for the id of another organization, which a caller cannot distinguish. */
export function notFound(what: string): ApiError {
  return new ApiError('NOT_FOUND', `There is no ${what} with this id.`)
}

export function toProblem(error: ApiError, instance: string, requestId: string): Problem {
  const { errors, ruleId, mergedInto, quota, current } = error.options
  return {
    type: `urn:keyward:problem:${error.code.toLowerCase().replaceAll('_', '-')}`,
    title: PROBLEMS[error.code].title,
    status: error.status,
    detail: error.message,
    instance,
    code: error.code,
    requestId,
    ...(errors && { errors }),
    ...(ruleId !== undefined && { ruleId }),
    ...(mergedInto !== undefined && { mergedInto }),
    ...(quota && { quota }),
    ...(typeof current === 'object' && current !== null && { current: { ...current } }),
  }
}

const DISK_FULL =
  'The database has no free disk space, so nothing can be changed. Reads and checks of known machines continue. Retry after the operator ' +
  'has freed space.'

/** Returns the error for the response. `unexpected` is true when the given error must be logged. */
export function toApiError(error: unknown): { apiError: ApiError; unexpected: boolean } {
  if (error instanceof ApiError) return { apiError: error, unexpected: false }
  const headers = { 'retry-after': '1' }
  if (isDiskFull(error)) return { apiError: new ApiError('UNAVAILABLE', DISK_FULL, { headers }), unexpected: true }
  if (isServerUnavailable(error) || isConnectionFailure(error) || isRetryable(error))
    return { apiError: new ApiError('UNAVAILABLE', undefined, { headers }), unexpected: true }
  return { apiError: new ApiError('INTERNAL'), unexpected: true }
}
